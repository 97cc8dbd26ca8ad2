"""What robots are asked to do in the worlds bench: motion families in and outside the training's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.control.action import JointAction
from retorque.control.reference import Reference, minimum_jerk
from retorque.control.windowed_sines import WindowedSines
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

LEARN = 6.0
"""Sines before something is touched [s]."""
REACH = 1.0
"""Time of the move towards a wall [s]."""
STEP = 2.0
"""Time between jumps of the stepped motion [s]."""
TELEOPERATION = 1.0 / 30.0
"""Time between targets of the teleoperated motion [s]."""
PAUSE = (6.0, 2.5)
"""How often a teleoperator rests, and for how long [s]."""
NEAR_LIMIT = 0.9
"""Share of the velocity limit that the fast motion reaches."""
FASTEST = 1.2
"""Highest frequency of the fast motion [Hz]."""


class Punctual:
    """A reference that goes by the world's time, whatever the robot's reports say.

    Args:
        reference: the motion.
        now: the world's time [s].
    """

    period = 0.0

    def __init__(self, reference: Reference, now: Callable[[], float]):
        self._reference, self._now = reference, now

    def reset(self, state: State) -> None:
        """It begins with the world."""

    def act(self, state: State) -> JointAction:
        action = self._reference.at(self._now())
        assert isinstance(action, JointAction)
        return action


class LearnThenMove(Reference):
    """Sines for a while, back home, then a move by `change` (n,) that is held."""

    def __init__(self, sines: WindowedSines, change: Array, duration: float):
        self.sines, self.change, self.duration = sines, change, duration

    def at(self, time: float) -> JointAction:
        if time < self.sines.duration:
            return self.sines.at(time)
        step, rate = minimum_jerk(np.array((time - self.sines.duration) / REACH))
        shape = self.sines.amplitude.shape
        position = np.broadcast_to(self.sines.home + step * self.change, shape)
        return JointAction(position, np.broadcast_to(rate / REACH * self.change, shape))


class Jumps(Reference):
    """Targets (trials, count, n) that jump every `every` seconds, without a velocity."""

    def __init__(self, points: Array, every: float):
        self._points, self._every = points, every
        self.duration = points.shape[1] * every

    def at(self, time: float) -> JointAction:
        index = min(int(time / self._every + 1e-9), self._points.shape[1] - 1)
        return JointAction(self._points[:, index], np.zeros_like(self._points[:, index]))


def reference(robot: Robot, motion: str, trials: int, duration: float, seed: int, change: Array) -> Reference:
    """The motion of that name.

    Args:
        robot: who moves.
        motion: sines, slow, stepped, held, teleoperated, fast, learn-hold, press or press-elbow.
        trials: how many, each its own.
        duration: [s]
        seed: of everything random.
        change: (n,) of the move after learning, towards whatever is to be pressed [rad].
    """
    profile = profile_of(robot)
    home, amplitude = robot.home, profile.tracking_amplitude
    if motion in ("press", "press-elbow", "learn-hold"):
        cycles = (3.0 * LEARN / 16.0, 7.0 * LEARN / 16.0)
        sines = WindowedSines.sample(home, amplitude, trials, LEARN, seed, cycles=cycles)
        return LearnThenMove(sines, change, duration)
    if motion == "held":
        return Jumps(np.broadcast_to(home, (trials, 1, robot.n)).copy(), duration)
    if motion == "stepped":
        return _stepped(robot, 0.5 * amplitude, trials, duration, seed)
    if motion == "teleoperated":
        return _teleoperated(robot, amplitude, trials, duration, seed)
    speed = {"sines": (3.0, 7.0), "slow": (0.3, 0.7)}.get(motion)
    if speed is not None:
        cycles = (speed[0] * duration / 16.0, speed[1] * duration / 16.0)
        return WindowedSines.sample(home, amplitude, trials, duration, seed, cycles=cycles)
    fast = WindowedSines.sample(home, amplitude, trials, duration, seed)
    limit = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, np.inf)
    peak = 2.0 * np.pi * np.abs(fast.amplitude) / duration
    cycles = np.minimum(NEAR_LIMIT * limit / np.maximum(peak, 1e-9), FASTEST * duration)
    return WindowedSines(home, fast.amplitude, cycles, fast.phase, duration)


def _stepped(robot: Robot, size: Array, trials: int, duration: float, seed: int) -> Jumps:
    rng = np.random.default_rng(seed)
    count = max(1, round(duration / STEP))
    points = robot.home + rng.uniform(-1.0, 1.0, (trials, count, robot.n)) * size
    points[:, 0] = robot.home
    return Jumps(points, STEP)


def _teleoperated(robot: Robot, amplitude: Array, trials: int, duration: float, seed: int) -> Jumps:
    """Slow and quick hand movements by turns, with pauses, sampled as a teleoperator's device does."""
    rng = np.random.default_rng(seed)
    count = max(1, round(duration / TELEOPERATION))
    time = np.arange(count) * TELEOPERATION
    resting = (time[None] + rng.uniform(0.0, PAUSE[0], (trials, 1))) % PAUSE[0] < PAUSE[1]
    moved = np.cumsum(np.where(resting, 0.0, TELEOPERATION), axis=1)  # the hand's own time stands still in a pause
    moved -= moved[:, :1]
    frequency = rng.uniform(0.1, 0.9, (trials, 3, 1, robot.n))
    phase = rng.uniform(0.0, 2.0 * np.pi, (trials, 3, 1, robot.n))
    share = rng.dirichlet(np.ones(3), (trials, robot.n)).transpose(0, 2, 1)[:, :, None]
    angle = 2.0 * np.pi * frequency * moved[:, None, :, None] + phase
    wave = np.sum(share * (np.sin(angle) - np.sin(phase)), axis=1)  # (trials, count, n)
    return Jumps(robot.home + 0.7 * amplitude * wave, TELEOPERATION)
