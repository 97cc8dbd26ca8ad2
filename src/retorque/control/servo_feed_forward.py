"""What soft position servos must be told so that their joints arrive: targets ahead by load and friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors, friction_level
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class FeedForwardSettings:
    """Settings of the servos' feed-forward."""

    load_time: float = 0.2
    """Time constant with which felt loads are taken over [s]; infinite: not at all."""
    friction: float = 0.9
    """Share of the cards' friction that is fed forward."""
    smooth: float = 0.1
    """Time constant of the joint speed that friction is fed forward by [s]."""
    slow: float = 0.06
    """Speed below which friction is fed forward in proportion [rad/s]."""


class ServoFeedForward:
    """Offsets of servo targets: gravity, felt wrench, friction and back-EMF, each over the servo's stiffness.

    Args:
        joints: the motors.
        stiffness: of the position loops (n,) [N·m/rad].
        used: (sites, n) joints of each site; the others are left alone.
        trials: robots served at once.
        timestep: control period [s].
        settings: shares and times.
    """

    def __init__(
        self,
        joints: JointMotors,
        stiffness: Array,
        used: Array,
        trials: int = 1,
        timestep: float = 0.02,
        settings: FeedForwardSettings | None = None,
    ):
        self.settings = s = settings or FeedForwardSettings()
        self._joints, self._used, self._timestep = joints, used, timestep
        self._give = used.any(axis=0) / np.asarray(stiffness, dtype=float)
        emf = joints.torque_constant / (joints.velocity_constant * joints.winding_resistance)
        self._drag = joints.viscous + np.nan_to_num(emf)
        self._share = min(1.0, timestep / s.load_time)
        self._follow = min(1.0, timestep / s.smooth)
        n = len(joints.motors)
        self._load, self._before, self._velocity = np.zeros((3, trials, n))

    def reset(self, q: Array) -> None:
        """Begin at joint targets (trials, n), with no load."""
        self._before[:] = q
        self._load[:], self._velocity[:] = 0.0, 0.0

    def offsets(self, tree: CompiledTree, q: Array, wrench: Array | None) -> Array:
        """Offsets (trials, n) [rad] of targets q (trials, n) under felt wrenches (trials, sites, 6)."""
        s, j = self.settings, self._joints
        self._velocity += self._follow * ((q - self._before) / self._timestep - self._velocity)
        self._before[:] = q
        velocity = self._velocity
        if wrench is not None:
            felt = np.einsum("tsrn,tsr,sn->tn", tree.jacobian, wrench, self._used)
            self._load += self._share * (felt - self._load)
        torque = tree.gravity - self._load
        level = friction_level(torque, torque * velocity > 0.0, j.coulomb, j.efficiency)
        friction = s.friction * level * np.clip(velocity / s.slow, -1.0, 1.0) + self._drag * velocity
        return self._give * (torque + friction)
