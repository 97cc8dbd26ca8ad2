"""Where a joint is whose encoder is dead: the other joints feel its weight and its motion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

START = (0.02, 0.3)
"""How far a joint may be from where it is believed to be when it goes blind, standard deviations [rad, rad/s]."""
LOST = (0.5, 2.0)
"""More than that is never doubted [rad, rad/s]: what nothing speaks of stays where it is."""
LASTS = 0.3
"""What a correction misses keeps its sign for so long [s]."""
LEAST = 0.05
"""... and is never smaller than this [N·m]."""
BEFORE = 5
"""Windows after which it is known that a window's joints could all be seen."""
MEMORY = 2.0
"""Time over which what is missed is averaged [s]."""
DOUBT = 0.2
"""Share of a new window in how much worse blind joints are explained than those that could be seen."""
GONE, ANYWHERE = 15.0, (0.3, 2.0)
"""Where that is so many times worse, a joint is not where it was believed to be at all, and looked for that far around
[rad, rad/s]."""
NUDGES = (1e-3, 1e-2, 1e-1)
"""Steps of the derivatives [rad, rad/s, rad/s²]."""


class BlindJoints:
    """A Kalman filter of the positions and velocities of joints that nobody sees.

    An adapter knows the torque τ(q, q̇, q̈) that its robot needs. What was sent over a window, less that for the motion
    that is believed, is what the belief lacks: (∂τ/∂q) δq + (∂τ/∂q̇) δq̇ + (∂τ/∂q̈) δq̈, and what the adapter always
    misses. Gravity makes the other joints feel where a blind one is, inertia how it accelerates. How much is missed
    where everything can be seen is learnt beforehand: an adapter that explains its robot badly is told little.

    Args:
        robot: the ideal robot.
        shape: of a report, (..., n).
        period: length of a window [s].
        unknown: torque by which joints may differ from the ideal ones, (n,) [N·m].
    """

    def __init__(self, robot: Robot, shape: tuple[int, ...], period: float, unknown: Array):
        n = shape[-1]
        self._body, self._n, self._shape, self._unknown = RigidBody(robot), n, shape, unknown
        self.rate, self.noise_share = min(1.0, period / MEMORY), 2.0 * LASTS / period
        index = np.arange(n)
        self._step = np.eye(3 * n)  # of position, velocity and acceleration through a window
        self._step[index, n + index] = self._step[n + index, 2 * n + index] = period
        self._step[index, 2 * n + index] = 0.5 * period**2
        self._anywhere = np.repeat(np.square([*ANYWHERE, 0.0]), n)
        self._most = np.repeat(np.square([*LOST, np.inf]), n)
        self._newest = np.zeros((BEFORE + 1, *shape))
        self._calm = np.zeros((*shape[:-1], 1), dtype=np.int64)  # windows in a row in which all could be seen
        self._seen = np.zeros_like(self._calm)  # windows that were learnt from
        self._size = np.zeros((*shape, n))
        self._lasting = np.zeros(shape)
        self._covariance = np.zeros((*shape[:-1], 3 * n, 3 * n))
        self._doubt = np.ones(shape[:-1])
        self._blind = np.zeros(shape, dtype=bool)
        self.reset()

    def reset(self) -> None:
        """No joint is blind, and nothing is known of what the adapter misses."""
        self._blind[...] = False
        self._covariance[...] = self._newest[...] = 0.0
        self._calm[...] = self._seen[...] = 0
        self._doubt[...] = 1.0
        self._lasting[...] = np.square(self._unknown)
        self._size[...] = np.diag(np.square(self._unknown))

    def note(self, blind: Array, left: Array, good: Array) -> None:
        """A window has ended.

        Args:
            blind: which joints nobody sees, (..., n).
            left: torque that the correction does not explain, (..., n) [N·m].
            good: whether that may be believed, (...).
        """
        self._blind &= blind
        self._calm = np.where((~blind.any(axis=-1) & good)[..., None], self._calm + 1, 0)
        self._newest = np.concatenate([self._newest[1:], left[None]])
        counts = self._calm > BEFORE
        self._seen += counts
        rate = np.where(counts, np.maximum(self.rate, 1.0 / (1.0 + self._seen)), 0.0)
        one, next_one = np.where(counts, self._newest[:2], 0.0)
        self._size += rate[..., None] * (one[..., :, None] * one[..., None, :] - self._size)
        self._lasting += rate * (one * next_one - self._lasting)

    def window(
        self, blind: Array, since: Array, motion: Array, torque: Array, robot: Callable[[Array], Array]
    ) -> Array:
        """By how much positions and velocities of blind joints are wrong after a window, (2, ..., n).

        Args:
            blind: which joints, (..., n).
            since: for how long their reports have repeated, (..., n) [s].
            motion: mean position, velocity and acceleration of the window, as they are believed, (3, ..., n).
            torque: mean torque of the window, (..., n) [N·m].
            robot: the torque that a motion needs, (3, ..., n) -> (..., n).
        """
        n = self._n
        rows, lacking = self._rows(blind, motion, torque, robot)
        kept, new = blind & self._blind, blind & ~self._blind
        covariance = self._ahead(blind, kept, since, motion[0])
        noise = self._size.copy()
        index = np.arange(n)
        noise[..., index, index] += LEAST**2 + self.noise_share * np.maximum(self._lasting, LEAST**2)
        reach = np.matmul(rows, covariance)
        felt = np.matmul(reach, np.swapaxes(rows, -1, -2))
        distance = np.sum(lacking * np.linalg.solve(felt + noise, lacking[..., None])[..., 0], axis=-1) / n
        self._doubt = np.where(kept.any(axis=-1), self._doubt + DOUBT * (distance - self._doubt), 1.0)
        total = felt + np.clip(self._doubt, 1.0, GONE)[..., None, None] * noise
        gain = np.swapaxes(np.linalg.solve(total, reach), -1, -2)
        began = np.asarray(new.any(axis=-1))  # in the middle of that window
        gain = np.where(began[..., None, None], 0.0, gain)
        found = np.matmul(gain, lacking[..., None])[..., 0]
        covariance -= np.matmul(gain, reach)
        numbers = np.concatenate([found, self._doubt[..., None], covariance.reshape(*found.shape[:-1], -1)], axis=-1)
        sound = np.asarray(np.isfinite(numbers).all(axis=-1))
        self._covariance = np.where(sound[..., None, None], covariance, 0.0)
        self._blind = blind & sound[..., None]
        self._doubt = np.where(sound, self._doubt, 1.0)
        found = np.where(sound[..., None], found, 0.0)
        return np.stack([found[..., :n], found[..., n : 2 * n]])

    def _ahead(self, blind: Array, kept: Array, since: Array, position: Array) -> Array:
        """Covariance of blind joints' positions, velocities and accelerations now."""
        n = self._n
        mass = np.diagonal(self._body.mass_matrix(position), axis1=-2, axis2=-1)
        place, speed = START
        begin = np.concatenate([place**2 + np.square(speed * since), np.full(self._shape, speed**2)], axis=-1)
        known = np.concatenate([kept, kept, np.zeros_like(kept)], axis=-1)
        covariance = np.where(known[..., :, None] & known[..., None, :], self._covariance, 0.0)
        places = np.arange(2 * n)
        covariance[..., places, places] += np.where(np.tile(blind & ~kept, 2), begin, 0.0)
        places = np.arange(2 * n, 3 * n)
        covariance[..., places, places] = np.where(blind, np.square(self._unknown / mass), 0.0)
        covariance = self._step @ covariance @ self._step.T
        spread = np.diagonal(covariance, axis1=-2, axis2=-1)
        share = np.sqrt(np.minimum(1.0, self._most / np.maximum(spread, 1e-12)))
        covariance = covariance * share[..., :, None] * share[..., None, :]
        gone = np.tile(blind, 3) & (self._doubt > GONE)[..., None]
        covariance[..., np.arange(3 * n), np.arange(3 * n)] += np.where(gone, self._anywhere, 0.0)
        return np.asarray(covariance)

    def _rows(self, blind: Array, motion: Array, torque: Array, robot: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Derivatives of the needed torque by blind joints' motion (..., n, 3 n), and the torque that is lacking."""
        needed = robot(motion)
        columns = np.zeros((*self._shape, 3 * self._n))
        for j in np.flatnonzero(blind.reshape(-1, self._n).any(axis=0)):
            for k, nudge in enumerate(NUDGES):
                moved = motion.copy()
                moved[k, ..., j] += nudge
                columns[..., k * self._n + j] = np.where(blind[..., j, None], (robot(moved) - needed) / nudge, 0.0)
        return columns, torque - needed
