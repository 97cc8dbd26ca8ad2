"""What the tasks of the TAM paper share: a scene, a policy made for the ideal robot, and a score for each trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from retorque.control.action import Action, PoseAction, TorqueAction
from retorque.control.controller import Controller
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop
from retorque.loop.loop import run as run_loop
from retorque.loop.plant import Plant
from retorque.loop.policy import Policy
from retorque.physics.default_profile import profile_of
from retorque.physics.inertia import from_vector, moved, robot_inertia, to_vector
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Frame, Link, Robot
from retorque.robots.rotation import from_quaternion
from retorque.robots.state import State
from retorque.simulate.scene import Scene
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class Robots:
    """What is hidden about the robots of a bench, and how well they are measured: the same in every row."""

    parameters: Parameters
    sensors: SensorSettings
    seed: int
    """Of the sensor noise."""

    @classmethod
    def ideal(cls, robot: Robot, trials: int) -> Robots:
        """Ideal robots with perfect sensors."""
        return cls(parameters=Parameters.ideal(robot, trials), sensors=SensorSettings.perfect(trials), seed=0)

    @classmethod
    def hidden(cls, robot: Robot, trials: int, seed: int, payload: float = 0.0) -> Robots:
        """Parameters, noise and delays drawn from the robot's profile, and a payload on top [kg]."""
        seeds = np.random.SeedSequence([seed, 1]).generate_state(3)
        profile = profile_of(robot)
        parameters = Parameters.sample(robot, profile, trials, int(seeds[0]))
        if payload:
            parameters = parameters.with_payload(parameters.payload_mass + payload)
        sensors = SensorSettings.sample(profile, trials, int(seeds[1]))
        return cls(parameters=parameters, sensors=sensors, seed=int(seeds[2]))

    def part(self, rows: slice) -> Robots:
        """Some of them."""
        sensors = SensorSettings(**{f.name: getattr(self.sensors, f.name)[rows] for f in fields(self.sensors)})
        return Robots(parameters=self.parameters[rows], sensors=sensors, seed=self.seed + (rows.start or 0))


class Referee(ABC):
    """Looks on while a task runs and keeps the score."""

    @abstractmethod
    def look(self, target: Target, tick: int) -> None:
        """Called after every tick with its number."""

    @abstractmethod
    def scores(self) -> Array:
        """(trials,) the score of each."""


class PolicyTask(ABC):
    """One task: its robot, its scene, its starts and goals drawn from a seed; `part` takes some of the trials."""

    name: ClassVar[str]
    metric: ClassVar[str]
    """What is counted: success (1 or 0), or goals."""
    unit: ClassVar[str]
    duration: ClassVar[float]
    """Of a trial [s]."""
    robot: Robot
    """The ideal robot with its tool."""
    trials: int

    @abstractmethod
    def scene(self) -> Scene:
        """What stands around the robot."""

    @abstractmethod
    def controller(self) -> Controller[Any]:
        """What the policy's actions go through."""

    @abstractmethod
    def referee(self) -> Referee:
        """A new one for one run."""

    @abstractmethod
    def part(self, rows: slice) -> PolicyTask:
        """The same task with some of the trials."""

    @abstractmethod
    def settle(self, target: Target) -> None:
        """Put the robots and the things at their starts."""

    def target(self, robots: Robots, threads: int = 1) -> Target:
        """The robots in the scene, at their starts."""
        if robots.parameters.trials != (self.trials,):
            raise RetorqueError(f"this task has {self.trials} trials, the robots {robots.parameters.trials}")
        target = Target(
            self.robot,
            robots.parameters,
            scene=self.scene(),
            sensors=robots.sensors,
            seed=robots.seed,
            threads=threads,
        )
        self.settle(target)
        return target


class WidthChecked:
    """A policy whose actions are refused where they have another width than the robot.

    Args:
        policy: anyone's.
    """

    def __init__(self, policy: Policy):
        self._policy, self.period = policy, policy.period

    def reset(self, state: State) -> None:
        self._policy.reset(state)

    def act(self, state: State) -> Action:
        action = self._policy.act(state)
        told = np.asarray(action.torque if isinstance(action, TorqueAction) else getattr(action, "position", ()))
        wanted = (*state.position.shape[:-1], 3) if isinstance(action, PoseAction) else state.position.shape
        if told.shape != wanted:
            raise RetorqueError(
                f"{type(self._policy).__name__} gave a {type(action).__name__} of the shape {told.shape}; this "
                f"robot's is {wanted}"
            )
        return action


def play(
    task: PolicyTask,
    target: Target,
    policy: Policy,
    adapter: Adapter | None = None,
    *,
    plant: Plant | None = None,
    progress: Callable[[int], None] | None = None,
    look: Callable[[int], None] | None = None,
) -> Array:
    """Run a task once from the target's state; the score of each trial, (trials,).

    A trial that diverges scores nothing.

    Args:
        task: what to do.
        target: robots and things at their starts.
        policy: what acts.
        adapter: what corrects the torques.
        plant: the target as the policy sees it; default: as it is.
        progress: called with the number of ticks done.
        look: called with the number of each tick just before it.
    """
    referee = task.referee()
    loop = Loop(plant or target, WidthChecked(policy), task.controller(), adapter)

    def before(tick: int) -> None:
        referee.look(target, tick)
        if look is not None:
            look(tick)

    run_loop(loop, task.duration, before=before, progress=progress)
    referee.look(target, round(task.duration / target.timestep))
    return np.where(target.diverged, 0.0, referee.scores())


def with_tool(robot: Robot, frame: Frame, mass: float, half_size: Array) -> Robot:
    """The robot with a cuboid of uniform density fused into the link that carries it.

    Args:
        robot: without the tool.
        frame: the cuboid's centre and axes.
        mass: [kg].
        half_size: (3,) [m].
    """
    x, y, z = np.asarray(half_size, dtype=float) ** 2
    own = to_vector(np.array(mass), np.zeros(3), mass / 3.0 * np.diag([y + z, x + z, x + y]))
    index = [link.name for link in robot.moving_links].index(frame.link)
    total = robot_inertia(robot)[index] + moved(own, from_quaternion(frame.quaternion), np.array(frame.position))
    return robot.with_links(tuple(_heavier(link, total) if link.name == frame.link else link for link in robot.links))


def _heavier(link: Link, vector: Array) -> Link:
    mass, centre, inertia = from_vector(vector)
    a, b, c = (float(v) for v in centre)
    xx, yy, zz, xy, xz, yz = (float(inertia[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return replace(link, mass=float(mass), centre=(a, b, c), inertia=(xx, yy, zz, xy, xz, yz))
