"""A stand-in's log, identified and written as a card, and how near the card's simulation comes to the stand-in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.adapt import make
from retorque.control.action import JointAction
from retorque.control.computed_torque import ComputedTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.identify.commands import IdentifySettings, identify
from retorque.identify.excite.excitation import Excitation, excite
from retorque.identify.excite.play import samples
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.stand_in import StandIn
from retorque.simulate.target import Target

Array = np.ndarray
Kind = Literal["hidden parameters", "stand-in"]
DURATION = 8.0
"""Of the motion whose tracking is compared [s]."""
TIMESTEP = 1e-3


class Played:
    """The exciting motion as a policy."""

    period = 0.0

    def __init__(self, rows: tuple[Array, ...]):
        self.rows = rows

    def reset(self, state: State) -> None:
        self._begun = state.time

    def act(self, state: State) -> JointAction:
        k = min(round((state.time - self._begun) / TIMESTEP), len(self.rows[0]) - 1)
        _, q, qd, qdd, _ = self.rows
        return JointAction(q[k][None], qd[k][None], qdd[k][None])


@cache
def exciting(name: str) -> tuple[Array, ...]:
    """The exciting motion of a robot, from home and back."""
    robot = Robot.load(name)
    return samples(excite(robot, Excitation(starts=1, iterations=3)), robot, 1.0 / TIMESTEP)


def plant(robot: Robot, kind: Kind, seed: int, trials: int = 1) -> Target:
    """The robot that nobody knows; all trials are the same one."""
    if kind == "stand-in":
        return StandIn(robot, trials, seed=seed, noise_seed=seed)
    hidden = Parameters.sample(robot, profile_of(robot), 1, seed)[np.zeros(trials, dtype=int)]
    noise = {"position_noise": np.full(trials, 5e-5), "velocity_noise": np.full(trials, 1e-3)}
    delay = np.zeros(trials, dtype=int)
    sensors = SensorSettings(**noise, velocity_delay=delay, torque_delay=delay)
    return Target(robot, hidden, sensors=sensors, seed=seed, threads=1)


def record(robot: Robot, kind: Kind, seed: int, folder: Path) -> Path:
    """A log of the exciting motion on that robot, under computed torque of the maker's card."""
    rows = exciting(robot.name)
    arm = plant(robot, kind, seed)
    arm.reset(np.tile(robot.home, (1, 1)))
    controller = ComputedTorque(robot, RigidBody(robot), np.full(robot.n, 200.0))
    loop = Loop(arm, Played(rows), controller)
    kept: list[tuple[Array, ...]] = []
    for _ in range(len(rows[0])):
        tick = loop.tick()
        sent = np.clip(tick.command.torque[0], -robot.torque_limit, robot.torque_limit)
        kept.append((tick.state.position[0].copy(), tick.state.velocity[0].copy(), sent))
    q, qd, torque = (np.array(column) for column in zip(*kept, strict=True))
    path = folder / f"{kind.replace(' ', '-')}-{seed}.npz"
    np.savez(path, time=np.arange(len(q)) * TIMESTEP, q=q, qd=qd, tau=torque)
    return path


def identified_card(robot: Robot, kind: Kind, seed: int, folder: Path, friction: str = "auto") -> Path:
    """From the log to the written card."""
    log = record(robot, kind, seed, folder)
    where = folder / f"{log.stem}-{friction}"
    outcome = identify(IdentifySettings(logs=(log,), robot=robot.name, friction=friction, export=where))
    for _, written in outcome.write_files():
        assert not isinstance(written, Exception), written
    return where / f"{robot.name}_identified.toml"


def tracking(
    robot: Robot, arm: Target, seed: int, trials: int, adapter: Adapter | None = None, seconds: float = DURATION
) -> Array:
    """(ticks, trials, n) what an arm's encoders say while it follows random sines under the maker's impedance law."""
    profile = profile_of(robot)
    cycles = (3.0 * DURATION / 16.0, 7.0 * DURATION / 16.0)
    reference = WindowedSines.sample(
        robot.home, profile.tracking_amplitude, trials, DURATION, 77_000 + seed, cycles=cycles
    )
    stiffness = profile.tracking_stiffness
    damping = critical_damping(robot, stiffness) if profile.tracking_damping is None else profile.tracking_damping
    arm.reset(reference.at(0.0).position)
    loop = Loop(arm, reference, JointImpedance(robot, stiffness, damping), adapter)
    return np.array([loop.tick().state.position for _ in range(round(seconds / TIMESTEP))])


def simulated(robot: Robot, parameters: Parameters, trials: int) -> Target:
    """A simulation of some parameters, once a trial."""
    rows = parameters.flatten()[None].repeat(trials, axis=0)
    return Target(robot, Parameters.unflatten(robot, rows, parameters.friction), threads=1)


def ratio(robot: Robot, kind: Kind, seed: int, card: Robot, trials: int = 4) -> float:
    """RMS distance between the stand-in and the identified card's simulation, over that of the maker's card."""
    real = tracking(robot, plant(robot, kind, seed, trials), seed, trials)
    named = tracking(robot, simulated(robot, Parameters.of_robot(card), trials), seed, trials)
    nominal = tracking(robot, simulated(robot, Parameters.ideal(robot), trials), seed, trials)
    return float(np.sqrt(np.mean((named - real) ** 2) / np.mean((nominal - real) ** 2)))


def first_errors(robot: Robot, kind: Kind, seed: int, card: Path, trials: int = 4) -> dict[str, float]:
    """RMS distance from the ideal robot's motion over the first 2 s, by adapter [deg]."""
    ideal = tracking(robot, simulated(robot, Parameters.ideal(robot), trials), seed, trials, seconds=2.0)
    settings = {"card": str(card)}
    adapters = {
        "direct": make("direct", robot, trials),
        "identified": make("identified", robot, trials, settings=settings),
        "recursive from ranges": make("recursive", robot, trials),
        "recursive from the card": make("recursive", robot, trials, settings=settings),
    }
    found = {}
    for name, adapter in adapters.items():
        path = tracking(robot, plant(robot, kind, seed, trials), seed, trials, adapter, seconds=2.0)
        found[name] = float(np.rad2deg(np.sqrt(np.mean((path - ideal) ** 2))))
    return found
