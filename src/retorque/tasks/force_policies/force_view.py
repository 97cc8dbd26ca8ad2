"""What UniFP and FACET are told: joints, servo errors of late, where the pen is, and the command (Table II)."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.rotation_steps import rotation_between
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.tasks.force_policies.force_arm import SITE
from retorque.work.array import Array

LATE = 3
"""Servo errors that are remembered: those of this tick and of the two before."""
ACTION = 0.5
"""A share of 1 moves a joint's target by this from its home [rad]."""
MOST = 3.0
"""Largest share."""
PLACE = np.array([[0.0, 0.10], [0.0, 0.09], [0.0, 0.15]])
"""Table II: the right hand's place from where it begins [m]."""
TURN = np.array([[0.0, 0.10], [-0.07, 0.07], [0.0, 0.0]])
"""Its turn; about y as wide as Table II's 0.2 to 0.34, about our own start, which already points at the board [rad]."""
STIFFNESS = np.array([[120.0, 400.0], [350.0, 400.0], [350.0, 400.0], [20.0, 40.0]])
"""Along x, y, z [N/m], and of rotations [N·m/rad]."""
COMMANDED = np.array([[0.0, 5.0], [-1.5, 1.5], [-2.0, 0.0]])
"""Force that is commanded [N]."""
PUSHED = np.array([[-5.0, 0.0], [0.0, 3.0], [0.0, 3.0]])
"""Force on the hand [N]; along x it pushes back, against what is commanded."""


class ForceView:
    """Observations of `trials` arms.

    Args:
        arm: as `force_arm` makes it.
        trials: how many.
    """

    def __init__(self, arm: Robot, trials: int):
        self.arm, self.trials = arm, trials
        self.tree = CompiledTree(arm, (arm.frame(SITE),), trials)
        self.tree.update(np.tile(arm.home, (trials, 1)))
        self.place, self.rotation = self.tree.position[0, 0].copy(), self.tree.rotation[0, 0].copy()
        """(3,) and (3, 3) where the pen begins."""
        self._late = np.zeros((trials, LATE, arm.n))
        self.share = np.zeros((trials, arm.n))
        """What was last asked for."""

    @property
    def size(self) -> int:
        """Numbers of an observation."""
        return self.arm.n * (3 + LATE) + 6 + 13

    def reset(self) -> None:
        """A run begins."""
        self._late[:], self.share[:] = 0.0, 0.0

    def targets(self, share: Array) -> Array:
        """Joint targets (trials, n) of an action; remembered for the next observation."""
        self.share = np.clip(share, -MOST, MOST)
        return np.clip(self.arm.home + ACTION * self.share, self.arm.lower, self.arm.upper)

    def observe(self, q: Array, v: Array, place: Array, rotation: Array, force: Array, stiffness: Array) -> Array:
        """(trials, size) for joints (trials, n) and a command in the axes of the held torso.

        Args:
            q: [rad]
            v: [rad/s]
            place: (trials, 3) desired [m].
            rotation: (trials, 3, 3) desired.
            force: (trials, 3) commanded [N].
            stiffness: (trials, 4) along x, y, z and of rotations; beyond Table II it is told as the nearest there.
        """
        self.tree.update(q)
        self._late[:, 1:] = self._late[:, :-1].copy()
        self._late[:, 0] = self.arm.home + ACTION * self.share - q
        low, high = STIFFNESS.T
        told = np.clip((2.0 * stiffness - low - high) / (high - low), -1.0, 1.0)
        return np.concatenate(
            [
                q - self.arm.home,
                0.2 * v,
                self.share,
                10.0 * self._late.reshape(self.trials, -1),
                10.0 * (self.tree.position[:, 0] - self.place),
                3.0 * self.turned(self.tree.rotation[:, 0]),
                10.0 * (place - self.place),
                3.0 * self.turned(rotation),
                0.2 * force,
                told,
            ],
            axis=-1,
        )

    def turned(self, rotation: Array) -> Array:
        """Rotation vectors (trials, 3) from where the pen begins."""
        out = np.zeros((len(rotation), 3))
        for row, turn in zip(out, rotation, strict=True):
            rotation_between(self.rotation, turn, np.zeros(3), row)
        return out
