"""The recordings that models are learnt from: 26 Fourier motions of the stand-in, each slow and fast, split 42/6/4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco.batch
import numpy as np
from scipy.signal import butter, filtfilt

from retorque.control.action import JointAction
from retorque.control.computed_torque import ComputedTorque
from retorque.logs.motion import Motion, join
from retorque.loop.loop import Loop
from retorque.physics.rigid_body import RigidBody
from retorque.robots.formats.mjcf import to_mjmodel
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.stand_in import StandIn, StandInSettings
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

SCALES = (1e-3, 10.0)
"""Shortest and longest recordings, as parts of the paper's."""
PATHS = 26
HARMONICS = 5
PERIODS = 10
"""Repetitions of a path at scale 1: 26 x (13.5 + 54) s x 10 are the paper's 17.5 million samples."""
FAST_PERIOD = 13.5
"""Seconds that a fast execution takes for one round of its path; a slow one takes four times as long [s]."""
SPEEDS = {"slow": 0.1, "fast": 0.4}
"""Largest velocity as a part of the joint's limit."""
STIFF = (400.0, 400.0, 200.0, 200.0, 200.0, 200.0, 200.0)
"""The paper's stiff gains [1/s²]; the last serves any further joint."""
RATE = 1000.0  # Hz
LEAD_IN = 1000
"""Ticks that are played but not kept, so that no record holds the start's transient."""


@dataclass(frozen=True)
class Split:
    """The recordings by use; each motion is one execution of one path."""

    train: list[Motion]
    validation: list[Motion]
    test: list[Motion]

    def torque_range(self) -> tuple[Array, Array]:
        """Smallest and largest torque of each joint in the training data, (n,) each [N·m]: the paper's scale."""
        low = np.min([m.torque.min(axis=0) for m in self.train], axis=0)
        high = np.max([m.torque.max(axis=0) for m in self.train], axis=0)
        return low, high

    def pair(self) -> list[Motion]:
        """The small set of Table I: one path, slow and fast."""
        return self.train[2:4]


@dataclass(frozen=True)
class FourierPath:
    """Joint paths of equation 15 over a phase in periods."""

    centre: Array
    """(paths, n) [rad]"""
    sine: Array
    """(paths, n, harmonics) [rad]"""
    cosine: Array
    """(paths, n, harmonics) [rad]"""

    def at(self, phase: Array, rate: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration (..., paths, n) at a phase (..., paths) that grows by `rate` [1/s]."""
        order = np.arange(1, self.sine.shape[-1] + 1)
        angle = 2.0 * np.pi * np.asarray(phase)[..., None, None] * order
        s, c = np.sin(angle), np.cos(angle)
        turn = 2.0 * np.pi * np.asarray(rate)[..., None, None] * order
        q = self.centre + np.sum(self.sine * s - self.cosine * c, axis=-1)
        qd = np.sum(turn * (self.sine * c + self.cosine * s), axis=-1)
        qdd = np.sum(np.square(turn) * (self.cosine * c - self.sine * s), axis=-1)
        return q, qd, qdd


def fourier_paths(robot: Robot, count: int, seed: int, candidates: int = 16) -> FourierPath:
    """Paths with much information: each is the best of several random ones by log det of the regressor's Gram matrix.

    Every joint uses as much of its velocity limit (at fast speed) and of its position range as the shape allows.
    """
    rng = np.random.default_rng([seed, 26])
    total = count * candidates
    order = np.arange(1, HARMONICS + 1)
    shape = (total, robot.n, HARMONICS)
    sine, cosine = rng.standard_normal(shape) / order, rng.standard_normal(shape) / order
    path = FourierPath(np.zeros((total, robot.n)), sine, cosine)
    phase = np.linspace(0.0, 1.0, 200, endpoint=False)[:, None] * np.ones(total)
    q, qd, _ = path.at(phase, np.full(total, 1.0 / FAST_PERIOD))
    limit = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, 2.0)
    lower, upper = np.maximum(robot.lower, robot.home - 3.0), np.minimum(robot.upper, robot.home + 3.0)
    room = 0.85 * (upper - lower)
    low, high = q.min(axis=0), q.max(axis=0)
    scale = np.minimum(SPEEDS["fast"] * limit / np.abs(qd).max(axis=0), room / (high - low))
    free = (upper - lower) - scale * (high - low)
    centre = lower + free * rng.uniform(0.3, 0.7, scale.shape) - scale * low
    path = FourierPath(centre, sine * scale[..., None], cosine * scale[..., None])
    q, qd, qdd = path.at(phase[::5], np.full(total, 1.0 / FAST_PERIOD))
    regressor = RigidBody(robot).regressor(q, qd, qdd)  # (40, total, n, 10 links)
    tall = regressor.swapaxes(0, 1).reshape(total, -1, regressor.shape[-1])
    gram = tall.mT @ tall + 1e-4 * np.eye(tall.shape[-1])
    score = np.linalg.slogdet(gram)[1].reshape(count, candidates)
    best = np.argmax(score, axis=1) + candidates * np.arange(count)
    return FourierPath(path.centre[best], path.sine[best], path.cosine[best])


class BatchInverseDynamics:
    """Inverse dynamics of the card for a batch of robots at once.

    Args:
        robot: the card.
        trials: how many robots.
    """

    def __init__(self, robot: Robot, trials: int):
        model = to_mjmodel(robot)
        self._batch = batch = mujoco.batch.Batch(model, trials, 1)
        self._position, self._velocity = batch.bind("qpos"), batch.bind("qvel")
        self._sparse, self._bias = batch.bind("M"), batch.bind("qfrc_bias")
        spans = list(zip(model.M_rowadr, model.M_rownnz, strict=True))
        self._rows = np.repeat(np.arange(model.nv), model.M_rownnz)
        self._columns = np.concatenate([model.M_colind[start : start + count] for start, count in spans])
        self._entries = np.concatenate([start + np.arange(count) for start, count in spans])
        self._mass = np.zeros((trials, model.nv, model.nv))

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """(trials, n) position, velocity and acceleration to torque [N·m]."""
        self._position[:], self._velocity[:] = q, qd
        self._batch.forward(stage=int(mujoco.mjtStage.mjSTAGE_VEL))
        entries = self._sparse[:, self._entries]
        self._mass[:, self._rows, self._columns] = entries
        self._mass[:, self._columns, self._rows] = entries
        return (self._mass @ qdd[..., None])[..., 0] + self._bias


class PlayedPaths:
    """Fourier paths as a policy: each trial follows one, from the lead-in before its start.

    Args:
        paths: one a trial.
        rate: rounds a second, (trials,) [1/s].
    """

    period = 0.0

    def __init__(self, paths: FourierPath, rate: Array):
        self.paths, self.rate = paths, rate

    def reset(self, state: State) -> None:
        """The lead-in begins."""
        self._begun = state.time

    def act(self, state: State) -> JointAction:
        """Where each path is now."""
        return self.at(round((state.time - self._begun) * RATE))

    def at(self, tick: int) -> JointAction:
        """Where each path is so many ticks after the lead-in began."""
        return JointAction(*self.paths.at((tick - LEAD_IN) / RATE * self.rate, self.rate))


def record(
    robot: Robot,
    *,
    scale: float = 1.0,
    seed: int = 0,
    settings: StandInSettings | None = None,
    progress: Callable[[float], None] | None = None,
) -> Split:
    """Play the 52 motions on the stand-in under the paper's stiff computed-torque controller and keep what it reports.

    Args:
        robot: the card.
        scale: length of the recordings; 1 is the paper's 4.9 hours, 0.1 one round of every path.
        seed: of the paths, of what is hidden and of the noise.
        settings: sizes of what is hidden.
        progress: told the part that is done.
    """
    if not SCALES[0] <= scale <= SCALES[1]:
        raise RetorqueError(f"scale must lie between {SCALES[0]:g} and {SCALES[1]:g}, got {scale}")
    paths = fourier_paths(robot, PATHS, seed)
    ticks = {
        name: round(scale * PERIODS * FAST_PERIOD * RATE * SPEEDS["fast"] / speed) for name, speed in SPEEDS.items()
    }
    done = [0]
    total = sum(ticks.values()) + 2 * LEAD_IN

    def tick() -> None:
        done[0] += 1
        if progress and done[0] % 200 == 0:
            progress(done[0] / total)

    motions = {speed: _play(robot, paths, speed, count, seed, settings, tick) for speed, count in ticks.items()}
    if progress:
        progress(1.0)
    slow, fast = motions["slow"], motions["fast"]
    both = [motion for i in range(2, 22) for motion in (slow[i], fast[i])]
    unseen = [motion for i in (22, 23) for motion in (slow[i], fast[i])]
    return Split(
        train=[slow[0], fast[1], *both],
        validation=[fast[0], slow[1], *unseen],
        test=[motion for i in (24, 25) for motion in (slow[i], fast[i])],
    )


def _play(
    robot: Robot,
    paths: FourierPath,
    speed: str,
    ticks: int,
    seed: int,
    settings: StandInSettings | None,
    tick: Callable[[], None],
) -> list[Motion]:
    trials = len(paths.centre)
    arm = StandIn(robot, trials, seed=seed, noise_seed=seed + list(SPEEDS).index(speed), settings=settings)
    stiffness = np.array([STIFF[min(i, len(STIFF) - 1)] for i in range(robot.n)])
    policy = PlayedPaths(paths, np.full(trials, SPEEDS[speed] / SPEEDS["fast"] / FAST_PERIOD))
    start = policy.at(0)
    arm.reset(start.position, start.velocity)
    loop = Loop(arm, policy, ComputedTorque(robot, BatchInverseDynamics(robot, trials), stiffness))
    kept = np.empty((3, ticks, trials, robot.n), dtype=np.float32)
    for index in range(-LEAD_IN, ticks):
        state = loop.tick().state
        if index >= 0:
            kept[:, index] = state.position, state.velocity, arm.command
        tick()
    if not np.all(np.isfinite(kept)):
        raise RetorqueError("the stand-in's motion is not finite; use more substeps or smaller stiffness")
    return [motion_of(*kept[:, :, i]) for i in range(trials)]


def together(motions: list[Motion], every: int = 1) -> Motion:
    """Several motions as one in double precision, each thinned to one sample in `every`."""
    joined = join(motion[::every] for motion in motions)
    return Motion(**{k: np.asarray(getattr(joined, k), dtype=float) for k in ("q", "qd", "qdd", "torque", "time")})


def motion_of(position: Array, velocity: Array, torque: Array, cutoff: float = 5.0) -> Motion:
    """A recording with its acceleration: the slope of the velocity after a zero-phase Butterworth filter [Hz]."""
    b, a = butter(2, cutoff, fs=RATE)
    smooth = filtfilt(b, a, velocity.astype(float), axis=0, padlen=min(300, len(velocity) - 1))
    acceleration = np.gradient(smooth, 1.0 / RATE, axis=0).astype(np.float32)
    time = np.arange(len(position)) / RATE
    return Motion(q=position, qd=velocity, qdd=acceleration, torque=torque, time=time)
