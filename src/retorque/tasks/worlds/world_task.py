"""One robot in one world of the worlds bench: its targets, the ideal robot beside them, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from retorque.control.joint_impedance import JointImpedance
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop, run
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.simulate.effects import Effect, effect
from retorque.simulate.position_friction import PositionFriction
from retorque.simulate.report_faults import FaultyReports
from retorque.simulate.scene import Scene
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import fixed_base, gains
from retorque.tasks.worlds.bench_world import BenchWorld
from retorque.tasks.worlds.bodies import true_body, wider
from retorque.tasks.worlds.changes import Changes
from retorque.tasks.worlds.motions import LEARN, Punctual, reference
from retorque.tasks.worlds.reports import broken_reports
from retorque.tasks.worlds.touches import apply, touch_of, with_middle
from retorque.tasks.worlds.walls import END, wall_place
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

APART = 20260011
"""Mixed into every seed, so that no world here is one that a network was trained on."""
EVERY = 0.01
"""Time between the positions that are compared [s]."""
PHYSICS = 1e-3
"""Longest step of the simulator [s]."""


@dataclass(frozen=True)
class WorldRun:
    """What one adapter did in a world."""

    position: Array
    """(times, trials, n) [rad]"""
    end_force: Array | None
    """(trials,) mean over the last moments, where something solid is touched [N]."""
    peak_force: Array | None
    """(trials,) [N]"""


class WorldTask:
    """A world around one robot, `trials` times.

    Args:
        robot: the ideal robot.
        world: which world.
        trials: how many, each with something else hidden.
        seed: of everything random.
        noise: whether the sensors have the noise and delays of Table B.1.
    """

    def __init__(self, robot: Robot, world: BenchWorld, trials: int, seed: int, *, noise: bool = True):
        if trials < 1:
            raise RetorqueError(f"a bench needs at least 1 trial, not {trials}")
        self.robot, self.world, self.trials = fixed_base(robot), world, trials
        profile = profile_of(robot)
        key = [seed, APART, crc32(world.name.encode())]
        seeds = [int(s) for s in np.random.SeedSequence(key).generate_state(8)]
        self._body = with_middle(true_body(robot, world.body))
        if world.hidden == "nothing":
            drawn = Parameters.ideal(self._body, trials)
        else:
            ranges = profile if world.hidden == "usual" else wider(profile, 2.0)
            drawn = Parameters.sample(self._body, ranges, trials, seeds[0])
        self.changes = Changes(robot, world.change, drawn, world.duration, seeds[1])
        self.sensors = SensorSettings.sample(profile, trials, seeds[2]) if noise else SensorSettings.perfect(trials)
        self.touch = touch_of(robot, world.touch, trials, world.duration, seeds[3])
        self.place = wall_place(robot, world.touch)
        away = np.zeros(robot.n) if self.place is None or world.motion == "learn-hold" else self.place.change
        self.reference = reference(robot, world.motion, trials, world.duration, seeds[4], away)
        self._noise_seed, self.adapter_seed, self._fault_seed = seeds[5:8]

    @property
    def ticks(self) -> int:
        """Control periods of a run."""
        return round(self.world.duration / self.world.timestep)

    def ideal(self, progress: Callable[[int], None] | None = None) -> WorldRun:
        """How the ideal robot moves, whose reports are right and at which nothing changes."""
        target = self._target(with_middle(self.robot), Parameters.ideal(self.robot, self.trials), None, [])
        return self._run(target, broken_reports(target, "", 0), None, progress)

    def adapted(
        self,
        make: Callable[[Callable[[], Parameters]], Adapter],
        progress: Callable[[int], None] | None = None,
    ) -> WorldRun:
        """How the targets move.

        Args:
            make: the adapter, given the targets' true parameters (which only an oracle may look at).
            progress: told of the ticks done.
        """
        target = self._target(self._body, self.changes.first(), self.sensors, self._effects())
        plant = broken_reports(target, self.world.fault, self._fault_seed)
        return self._run(target, plant, make(lambda: target.parameters), progress)

    def _effects(self) -> list[Effect]:
        name = self.world.effect
        if name == "position-friction":
            return [PositionFriction(profile_of(self.robot).friction_max)]
        return [effect(name)] if name else []

    def _target(
        self, robot: Robot, parameters: Parameters, sensors: SensorSettings | None, effects: list[Effect]
    ) -> Target:
        target = Target(
            robot,
            parameters,
            scene=None if self.place is None else Scene(objects=[self.place.wall]),
            sensors=sensors,
            effects=effects,
            timestep=self.world.timestep,
            substeps=max(1, round(self.world.timestep / PHYSICS)),
            seed=self._noise_seed,
            threads=1,
        )
        target.reset(np.broadcast_to(self.robot.home, (self.trials, self.robot.n)))
        if self.place is not None:
            self.place.put(target, 0.0)
        return target

    def _run(
        self,
        target: Target,
        plant: FaultyReports,
        adapter: Adapter | None,
        progress: Callable[[int], None] | None,
    ) -> WorldRun:
        controller = JointImpedance(self.robot, *gains(self.robot, profile_of(self.robot)))
        loop = Loop(plant, Punctual(self.reference, lambda: target.time), controller, adapter)
        forces: list[Array] = []
        every = max(1, round(EVERY / self.world.timestep))

        def before(tick: int) -> None:
            time = target.time
            if self.touch is not None:
                apply(self.touch, target, time)
            if self.place is not None:
                self._wall(target, tick, forces if tick % every == 0 else None)
            changed = None if adapter is None else self.changes.due(time, self.world.timestep)
            if changed is not None:
                target.set_parameters(changed)

        trace = run(loop, self.world.duration, before=before, progress=progress, every=every)
        if self.place is None:
            return WorldRun(trace.position, None, None)
        pressed = np.array(forces)  # (times, trials)
        end = round(min(self.world.duration, self.place.until) / EVERY)
        return WorldRun(trace.position, pressed[end - round(END / EVERY) : end].mean(axis=0), pressed.max(axis=0))

    def _wall(self, target: Target, tick: int, forces: list[Array] | None) -> None:
        """Put the wall where it stands now, and note how hard it is pressed."""
        assert self.place is not None
        due = round(LEARN / self.world.timestep) == tick
        if due or self.place.moves(target.time):
            self.place.put(target, target.time)
        if forces is not None:
            forces.append(self.place.force(target))


def joint_error(run_: WorldRun, ideal: WorldRun) -> Array:
    """Joint RMSE against the ideal robot's motion, (trials,) [deg]."""
    return np.rad2deg(np.sqrt(np.mean((run_.position - ideal.position) ** 2, axis=(0, 2))))
