"""What pushes the robots of the worlds bench: joint pulses, forces at hand and arm, and leans."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Frame, Robot
from retorque.simulate.pulses import Pulses
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import unknown

TOUCHES = ("pulses", "pulses-long", "push-hand", "push-arm", "push-hand-long", "push-arm-long", "lean")
MIDDLE = "worlds_middle"
"""Name of the frame in the middle of the arm that is pushed."""
COUNT, LONG_COUNT = 5, 3
"""Short and lasting pushes a trial."""
SHORT, LONG = (0.08, 0.8), (2.0, 4.0)
"""How long they last [s]."""
HEIGHT = 0.15
"""Of joint pulses, as a share of the torque limit."""
LEAN, LEAN_FROM, LEAN_FOR, LEAN_RISE = 20.0, 4.0, 10.0, 0.3
"""Force [N], beginning, length and rise [s] of a lean."""
STRONG = 80.0
"""Largest force that an arm of the Panda's size is told; weaker arms are leant on in proportion [N]."""


@dataclass(frozen=True, kw_only=True)
class FramePushes:
    """Raised-cosine forces on one frame, (trials, pushes) of them."""

    frame: str
    start: Array
    """(trials, pushes) [s]"""
    duration: Array
    """(trials, pushes) [s]"""
    force: Array
    """(trials, pushes, 3) height in world axes [N]."""

    def at(self, time: float) -> Array:
        """The force at a time, (trials, 3) [N]."""
        phase = (time - self.start) / self.duration
        weight = np.where((phase > 0.0) & (phase < 1.0), np.sin(np.pi * phase) ** 2, 0.0)
        return np.einsum("tp,tpx->tx", weight, self.force)


@dataclass(frozen=True, kw_only=True)
class Lean:
    """A steady force at the hand."""

    frame: str
    force: Array
    """(trials, 3) in world axes [N]."""

    def at(self, time: float) -> Array:
        """The force at a time, (trials, 3) [N]."""
        since, left = time - LEAN_FROM, LEAN_FROM + LEAN_FOR - time
        return self.force * float(np.clip(min(since, left) / LEAN_RISE, 0.0, 1.0))


Touch = Pulses | FramePushes | Lean


def touch_of(robot: Robot, kind: str, trials: int, duration: float, seed: int) -> Touch | None:
    """What touches the robots of a world; None: nothing, or a wall."""
    if not kind or kind.startswith("wall"):
        return None
    if kind not in TOUCHES:
        raise unknown("touch", kind, TOUCHES)
    if kind == "pulses":
        return Pulses.sample(robot, trials, duration, seed)
    rng = np.random.default_rng(seed)
    low, high = profile_of(robot).external_force
    if kind == "lean":
        return Lean(frame="end_effector", force=_direction(rng, (trials,)) * LEAN * min(1.0, high / STRONG))
    long = kind.endswith("long")
    start, length = _times(rng, trials, duration, long)
    if kind == "pulses-long":
        limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)
        shape = (*start.shape, robot.n)
        height = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.5, shape) * HEIGHT * limit
        return Pulses(start=start, duration=length, torque=height)
    force = _direction(rng, start.shape) * rng.uniform(low, high, (*start.shape, 1))
    frame = MIDDLE if "arm" in kind else "end_effector"
    return FramePushes(frame=frame, start=start, duration=length, force=force)


def apply(touch: Touch, target: Target, time: float) -> None:
    """Push a target as the world does at a time."""
    if isinstance(touch, Pulses):
        target.push(touch.at(time))
    else:
        target.push_frame(touch.frame, touch.at(time))


def with_middle(robot: Robot) -> Robot:
    """The robot with a frame in the middle of the arm."""
    middle = robot.moving_links[robot.n // 2]
    return replace(robot, frames={**robot.frames, MIDDLE: Frame(link=middle.name, position=middle.centre)})


def _times(rng: np.random.Generator, trials: int, duration: float, long: bool) -> tuple[Array, Array]:
    """Beginnings and lengths; lasting pushes come one after the other, after a second of peace each."""
    count, (low, high) = (LONG_COUNT, LONG) if long else (COUNT, SHORT)
    length = rng.uniform(low, high, (trials, count))
    if not long:
        return rng.uniform(0.0, 1.0, (trials, count)) * (duration - length), length
    slot = (duration - 1.0) / count
    length = np.minimum(length, slot - 0.5)
    return 1.0 + slot * np.arange(count) + rng.uniform(0.0, 1.0, length.shape) * (slot - length), length


def _direction(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    vector = rng.standard_normal((*shape, 3))
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)
