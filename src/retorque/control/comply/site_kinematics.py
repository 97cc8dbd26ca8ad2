"""Inverse kinematics of sites within joint, speed and self-collision limits: one interface, and the compiled solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.rotation_steps import rotation_between
from retorque.control.comply.self_collision import SelfCollision
from retorque.physics.kernels.compiled import cholesky_solve, kernel
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Frame, Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class KinematicsSettings:
    """Settings of inverse kinematics."""

    damping: float = 0.01
    """Weight on joint motion beside errors of 1 m or 1 rad."""
    posture: float = 1e-4
    """Pull towards the posture it began at, in the same measure."""
    rotation: float = 0.3
    """Weight of 1 rad beside 1 m."""
    speed: float = 4.0
    """Largest joint speed where the card gives none [rad/s]."""
    margin: float = 0.02
    """Distance that is kept to the joint limits [rad]."""
    reach: float = 0.02
    """Position error above which a pose counts as out of reach [m]."""
    collision_margin: float = 0.0
    """Distance that links keep from each other [m]; 0: not looked at."""


class SiteKinematics(ABC):
    """Joint positions that bring sites to poses, step by step."""

    q: Array
    """(trials, n) where the joints are sent [rad]."""
    codes: Array
    """(trials,) `ComplyCode`s of the last step."""

    @abstractmethod
    def reset(self, q: Array) -> None:
        """Begin at joint positions (trials, n)."""

    @abstractmethod
    def step(self, position: Array, rotation: Array, base: Array | None = None) -> Array:
        """Joint positions (trials, n) nearer to site poses (trials, sites, ...), with a free base at (trials, 7)."""


@kernel
def _damped_step(
    jacobian: Array,
    at: Array,
    turned: Array,
    position: Array,
    rotation: Array,
    joints: Array,
    weights: Array,
    lower: Array,
    upper: Array,
    most: Array,
    posture: Array,
    q: Array,
    far: Array,
) -> bool:
    """One damped least-squares step of each site's own joints, within their limits; whether any is out of reach."""
    away = False
    far[:] = 0
    damping, pull, turn_weight, reach = weights[0], weights[1], weights[2], weights[3]
    count = joints.shape[1]
    a, b, e, near = np.empty((count, count)), np.empty((count, 1)), np.empty(6), np.zeros(3)
    held = np.zeros(count, dtype=np.int64)
    for t in range(q.shape[0]):
        for s in range(joints.shape[0]):
            m = 0
            while m < count and joints[s, m] >= 0:
                m += 1
            for i in range(3):
                e[i] = position[t, s, i] - at[t, s, i]
            rotation_between(turned[t, s], rotation[t, s], near, e[3:])
            if (e[0] ** 2 + e[1] ** 2 + e[2] ** 2) ** 0.5 > reach:
                far[t] = 1
                away = True
            for k in range(m):
                held[k] = 0
            for _ in range(3):
                for i in range(m):
                    ji = joints[s, i]
                    b[i, 0] = pull * (posture[t, ji] - q[t, ji])
                    for r in range(6):
                        w = 1.0 if r < 3 else turn_weight
                        b[i, 0] += w * jacobian[t, s, r, ji] * e[r]
                    for k in range(i + 1):
                        jk = joints[s, k]
                        x = 0.0
                        for r in range(6):
                            w = 1.0 if r < 3 else turn_weight
                            x += w * jacobian[t, s, r, ji] * jacobian[t, s, r, jk]
                        a[i, k] = x
                        a[k, i] = x
                    a[i, i] += damping + pull
                for i in range(m):
                    if held[i]:
                        for k in range(m):
                            a[i, k] = 0.0
                            a[k, i] = 0.0
                        a[i, i], b[i, 0] = 1.0, 0.0
                if not cholesky_solve(a[:m, :m], b[:m]):
                    break
                again = False
                for i in range(m):
                    ji = joints[s, i]
                    to = q[t, ji] + b[i, 0]
                    beyond = (to > upper[ji] and b[i, 0] > 0.0) or (to < lower[ji] and b[i, 0] < 0.0)
                    if beyond and not held[i]:
                        held[i] = 1
                        again = True
                if not again:
                    break
            largest = 1.0
            for i in range(m):
                largest = max(largest, abs(b[i, 0]) / most[joints[s, i]])
            for i in range(m):
                ji = joints[s, i]
                move = 0.0 if held[i] else b[i, 0] / largest
                q[t, ji] = min(max(q[t, ji] + move, min(lower[ji], q[t, ji])), max(upper[ji], q[t, ji]))
    return away


class DampedLeastSquares(SiteKinematics):
    """(JᵀWJ + λ) Δq = JᵀWe on the joints that move one site only; joints at a limit are held and the rest solved again.

    Args:
        robot: the robot.
        frames: the sites.
        used: (sites, n) joints of each site.
        trials: robots served at once.
        timestep: control period [s].
        settings: weights and limits.
    """

    def __init__(
        self,
        robot: Robot,
        frames: tuple[Frame, ...],
        used: Array,
        trials: int = 1,
        timestep: float = 0.02,
        settings: KinematicsSettings | None = None,
    ):
        self.settings = s = settings or KinematicsSettings()
        self.tree = CompiledTree(robot, frames, trials)
        most = int(used.sum(axis=1).max())
        self._joints = np.full((len(frames), most), -1)
        for k, row in enumerate(used):
            self._joints[k, : int(row.sum())] = np.flatnonzero(row)
        self._weights = np.array([s.damping**2, s.posture, s.rotation**2, s.reach])
        self._lower, self._upper = np.array(robot.lower + s.margin), np.array(robot.upper - s.margin)
        speed = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, s.speed)
        self._most = speed * timestep
        self.q, self.codes = np.zeros((trials, robot.n)), np.zeros(trials, dtype=np.int64)
        self._posture = np.zeros((trials, robot.n))
        self._far, self._none = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
        self._before = np.zeros((trials, robot.n))
        self._collision = SelfCollision(self.tree, s.collision_margin) if s.collision_margin > 0.0 else None

    def reset(self, q: Array) -> None:
        self.q[:] = q
        self._posture[:] = q

    def step(self, position: Array, rotation: Array, base: Array | None = None) -> Array:
        tree = self.tree
        tree.update(self.q, base)
        apart = None
        if self._collision is not None:
            self._before[:] = self.q
            apart = self._collision.distance().copy()
        away = _damped_step(
            tree.jacobian,
            tree.position,
            tree.rotation,
            position,
            rotation,
            self._joints,
            self._weights,
            self._lower,
            self._upper,
            self._most,
            self._posture,
            self.q,
            self._far,
        )
        self.codes = np.where(self._far > 0, int(ComplyCode.REACH), 0) if away else self._none
        if self._collision is not None and apart is not None:
            tree.update(self.q, base)
            now = self._collision.distance()
            close = (now < self.settings.collision_margin) & (now < apart)
            if close.any():  # nearer than allowed and still approaching: stay
                self.q[close] = self._before[close]
                self.codes = self.codes | np.where(close, int(ComplyCode.COLLISION), 0)
        return self.q
