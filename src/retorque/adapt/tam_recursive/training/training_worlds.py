"""Training data: what the adapter itself meets in the loop, with the true external and own torques as labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.adapt.default.adapter import Default
from retorque.adapt.tam.context import mass_matrices
from retorque.adapt.tam.training.recipe import with_armature
from retorque.adapt.tam_recursive.adapter import TamRecursive
from retorque.adapt.tam_recursive.training.training_touches import TrainingTouches
from retorque.control.joint_impedance import JointImpedance
from retorque.control.joint_waypoints import JointWaypoints
from retorque.control.windowed_sines import WindowedSines
from retorque.loop.loop import Loop
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.effects import Delay, Effect, FlexibleJoints, LuGre, Ripple
from retorque.simulate.position_friction import PositionFriction
from retorque.simulate.pulses import Pulses
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.array import Array

LOOPS: dict[str, type[TamRecursive]] = {"tam-recursive": TamRecursive, "default": Default}
"""Adapters whose loop worlds are driven in."""
TIMESTEP = 1e-3
AFTER = 2
"""Ticks after an answer at which it is judged: the middle of its use."""


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """How worlds are drawn."""

    loop: str = "tam-recursive"
    """Whose loop they are driven in. With default touches last for up to 5 s, at joints, hand or arm; payloads come
    and go and drives weaken in `changes` of the worlds, friction depends on position in `tight` of them, rotors of the
    ideal robot are others in `rotors` of them, and in `ideal` of them nothing is hidden."""
    trials: int = 24
    """Robots in a world."""
    duration: float = 10.0
    """Length of the motion [s]."""
    keep: int = 4
    """One answer in so many is kept."""
    contact: float = 0.6
    """Share of the robots that are pushed."""
    contact_share: tuple[float, float] = (0.03, 0.2)
    """Height of the pushes, as a share of the torque limit."""
    unmodelled: float = 0.6
    """Probability that a world has an effect that no parameter describes."""
    payload_step: float = 0.1
    """Probability that all robots of a world pick something up on the way."""
    tight: float = 0.2
    """Probability that friction depends on position in a world."""
    changes: float = 0.5
    """Probability that something changes half-way at half of the robots of a world, and back."""
    rotors: float = 0.3
    """Probability that the ideal robot's rotors weigh a third to three times what they do: robots to come."""
    ideal: float = 0.1
    """Probability that nothing is hidden in a world."""


def collect(robot: Robot, weights: Path, settings: WorldSettings, seed: int) -> dict[str, Array]:
    """Samples of one world, driven by the adapter with the weights so far.

    Returns:
        features (samples, n, FEATURES), taps (samples, n, TAPS) [units], external and own: the true torques
        (samples, n) [units], response: A = M_ξ M₀⁻¹ (samples, n, n).
    """
    rng = np.random.default_rng(seed)
    count = settings.trials
    wide = settings.loop == "default"
    if wide and rng.uniform() < settings.rotors:
        robot = with_armature(robot, robot.armature * 3.0 ** rng.uniform(-1.0, 1.0, robot.n))
    if wide and rng.uniform() < settings.ideal:
        parameters = Parameters.ideal(robot, count)
    else:
        parameters = Parameters.sample(robot, profile_of(robot), count, rng)
    sensors = SensorSettings.sample(profile_of(robot), count, rng)
    perfect = rng.uniform(size=count) < 0.15
    sensors = SensorSettings(**{name: np.where(perfect, 0, value) for name, value in vars(sensors).items()})
    target = Target(
        robot,
        parameters,
        sensors=sensors,
        effects=_effects(robot, settings, rng),
        seed=int(rng.integers(2**31)),
        threads=1,
    )
    adapter = LOOPS[settings.loop](robot, count, TIMESTEP, weights=weights)
    reference, stiffness, damping = _motion(robot, settings, rng)
    touch = _touch(robot, settings, rng)
    changes = _changes(robot, settings, parameters, rng) if wide else _pick_up(settings, parameters, rng)
    target.reset(reference.at(0.0).position)
    bodies, ideal_body = _bodies(robot, parameters), RigidBody(robot)
    loop = Loop(target, reference, JointImpedance(robot, stiffness, damping), adapter)
    rows: list[tuple[Array, ...]] = []
    waiting, answered = None, 0
    for tick in range(round(settings.duration / TIMESTEP)):
        if tick in changes:
            target.set_parameters(changes[tick])
            bodies = _bodies(robot, changes[tick])
        q, qd = target.position.copy(), target.velocity.copy()
        push = touch(tick * TIMESTEP, q)
        target.push(push)
        loop.tick()
        if adapter.answers > answered:
            answered = adapter.answers
            if rng.uniform() < 1.0 / settings.keep:
                waiting = (tick + AFTER, adapter.features, adapter.taps)
        if waiting is not None and tick >= waiting[0]:
            acceleration = (target.velocity - qd) / TIMESTEP
            own = target.command - adapter.needed(q, qd, acceleration, push)
            response = _responses(bodies, ideal_body, q)
            rows.append((*waiting[1:], push / adapter.unit, own / adapter.unit, response))
            waiting = None
    names = ("features", "taps", "external", "own", "response")
    arrays = {name: np.concatenate(parts) for name, parts in zip(names, zip(*rows, strict=True), strict=True)}
    sane = np.isfinite(arrays["own"]).all(axis=-1) & (np.abs(arrays["own"]).max(axis=-1) < 30.0)
    sane &= np.isfinite(arrays["features"]).all(axis=(1, 2))
    return {name: array[sane].astype(np.float32) for name, array in arrays.items()}


def _effects(robot: Robot, settings: WorldSettings, rng: np.random.Generator) -> list[Effect]:
    """At most one effect, of random size."""
    if settings.loop == "default" and rng.uniform() < settings.tight:
        shape = (settings.trials, robot.n)
        height = profile_of(robot).friction_max * rng.uniform(0.3, 1.2, shape)
        return [PositionFriction(height, rng.uniform(2.0, 10.0, shape), rng.uniform(0.0, 2.0 * np.pi, shape))]
    if rng.uniform() >= settings.unmodelled:
        return []
    kinds = [
        lambda: LuGre(
            coulomb=rng.uniform(0.3, 1.4),
            static=rng.uniform(1.4, 2.4),
            stribeck_velocity=rng.uniform(0.02, 0.1),
            stiffness=10.0 ** rng.uniform(2.7, 3.8),
        ),
        lambda: Ripple(amplitude=rng.uniform(0.2, 1.0), order=rng.uniform(8.0, 40.0)),
        lambda: FlexibleJoints(stiffness=10.0 ** rng.uniform(3.5, 4.3)),
        lambda: FlexibleJoints(gap=np.deg2rad(rng.uniform(0.03, 0.2))),
        lambda: Delay(int(rng.integers(1, 6))),
    ]
    often = np.array([1.0, 1.0, 1.0, 2.0, 1.0])  # backlash is the hardest to tell from a push
    return [kinds[rng.choice(len(kinds), p=often / often.sum())]()]


def _motion(
    robot: Robot, settings: WorldSettings, rng: np.random.Generator
) -> tuple[WindowedSines | JointWaypoints, Array, Array]:
    """A reference with stiffness and damping: windowed sines, or waypoints with pauses."""
    profile, count = profile_of(robot), settings.trials
    seed = int(rng.integers(2**31))
    scale = np.exp(rng.uniform(np.log(0.3), np.log(2.0), (count, 1)))
    if rng.uniform() < 0.5:
        cycles = (3.0 * settings.duration / 16.0, 7.0 * settings.duration / 16.0)
        sines = WindowedSines.sample(
            robot.home, profile.tracking_amplitude, count, settings.duration, seed, cycles=cycles
        )
        stiffness = profile.tracking_stiffness * scale
        return sines, stiffness, critical_damping(robot, stiffness)
    waypoints = JointWaypoints.sample(
        robot.home, robot.lower, robot.upper, profile.waypoint_delta, count, settings.duration, seed, waypoints=10
    )
    stiffness = profile.stiffness * scale
    return waypoints, stiffness, critical_damping(robot, stiffness) * rng.uniform(0.7, 1.3, (count, 1))


def _touch(robot: Robot, settings: WorldSettings, rng: np.random.Generator) -> Callable[[float, Array], Array]:
    """Joint torques from outside (trials, n) at a time and positions; other heights for every robot, none for some."""
    count, (low, high) = settings.trials, settings.contact_share
    if settings.loop == "default":
        return TrainingTouches.sample(robot, count, settings.duration, settings.contact, (low, high), rng).at
    pushed = rng.uniform(size=count) < settings.contact
    share = pushed * low * (high / low) ** rng.uniform(size=count)
    found = Pulses.sample(robot, count, settings.duration, int(rng.integers(2**31)), share=1.0)
    pulses = Pulses(start=found.start, duration=found.duration, torque=found.torque * share[:, None, None])
    return lambda time, q: pulses.at(time)


def _pick_up(settings: WorldSettings, parameters: Parameters, rng: np.random.Generator) -> dict[int, Parameters]:
    """Parameters from a tick on: all robots pick something up, or none."""
    step = rng.uniform() < settings.payload_step
    tick, mass = int(rng.uniform(0.2, 0.8) * settings.duration / TIMESTEP), rng.uniform(0.3, 1.5)
    return {tick: parameters.with_payload(parameters.payload_mass + mass)} if step else {}


def _changes(
    robot: Robot, settings: WorldSettings, before: Parameters, rng: np.random.Generator
) -> dict[int, Parameters]:
    """Parameters from a tick on: half of the robots pick something up, or drives of theirs weaken; and back."""
    if rng.uniform() >= settings.changes:
        return {}
    count, n = settings.trials, robot.n
    which = rng.uniform(size=count) < 0.5
    if rng.uniform() < 0.6:
        mass = profile_of(robot).payload_mass[1] * rng.uniform(0.3, 1.5, count)
        after = before.with_payload(before.payload_mass + which * mass)
    else:
        loss = rng.uniform(0.05, 0.2, (count, 1)) * np.ones(n)
        if rng.uniform() < 0.5:  # of one drive only
            loss *= np.arange(n) == rng.integers(0, n, (count, 1))
        after = before.with_arrays({"torque_scale": before.torque_scale * (1.0 - which[:, None] * loss)[..., None]})
    first, back = (rng.uniform([0.15, 0.55], [0.5, 0.9]) * settings.duration / TIMESTEP).astype(int)
    return {int(first): after, int(back): before}


def _bodies(robot: Robot, parameters: Parameters) -> list[RigidBody]:
    inertial = parameters.total_inertial(robot)
    return [RigidBody(robot, inertial[k], parameters.armature[k]) for k in range(len(inertial))]


def _responses(bodies: list[RigidBody], ideal: RigidBody, q: Array) -> Array:
    """A = M_ξ M₀⁻¹ of each robot, (trials, n, n)."""
    mass = np.stack([mass_matrices(body, row[None])[0] for body, row in zip(bodies, q, strict=True)])
    return np.linalg.solve(mass_matrices(ideal, q), mass).swapaxes(-1, -2)
