"""What soft position servos must be told so that their joints arrive: targets ahead by load and friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors
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
    slow: float = 0.02
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
        self._used = np.asarray(used, dtype=bool)
        give = used.any(axis=0) / np.asarray(stiffness, dtype=float)
        emf = joints.torque_constant / (joints.velocity_constant * joints.winding_resistance)
        self._card = np.array([joints.coulomb, joints.efficiency, joints.viscous + np.nan_to_num(emf), give])
        shares = (min(1.0, timestep / s.smooth), min(1.0, timestep / s.load_time))
        self._scales = np.array([timestep, *shares, s.friction, s.slow])
        n = len(joints.motors)
        self._load, self._before, self._velocity, self._out = np.zeros((4, trials, n))
        self._none = np.zeros((trials, len(used), 6))

    def reset(self, q: Array) -> None:
        """Begin at joint targets (trials, n), with no load."""
        self._before[:] = q
        self._load[:], self._velocity[:] = 0.0, 0.0

    def offsets(self, tree: CompiledTree, q: Array, wrench: Array | None) -> Array:
        """Offsets (trials, n) [rad] of targets q (trials, n) under felt wrenches (trials, sites, 6)."""
        _offsets(
            self._scales,
            tree.gravity,
            tree.jacobian,
            self._none if wrench is None else wrench,
            self._used,
            self._card,
            q,
            self._before,
            self._velocity,
            self._load,
            self._out,
        )
        return self._out


@kernel
def _offsets(
    scales: Array,
    gravity: Array,
    jacobian: Array,
    wrench: Array,
    used: Array,
    card: Array,
    q: Array,
    before: Array,
    velocity: Array,
    load: Array,
    out: Array,
) -> None:
    """Fill the offsets; see `ServoFeedForward`."""
    dt, follow, share, part, slow = scales
    coulomb, efficiency, drag, give = card[0], card[1], card[2], card[3]
    for t in range(q.shape[0]):
        for j in range(q.shape[1]):
            velocity[t, j] += follow * ((q[t, j] - before[t, j]) / dt - velocity[t, j])
            before[t, j] = q[t, j]
            if give[j] == 0.0:
                out[t, j] = 0.0
                continue
            felt = 0.0
            for s in range(used.shape[0]):
                if used[s, j]:
                    for r in range(6):
                        felt += jacobian[t, s, r, j] * wrench[t, s, r]
            load[t, j] += share * (felt - load[t, j])
            torque = gravity[t, j] - load[t, j]
            lost = 1.0 - efficiency[j] if torque * velocity[t, j] > 0.0 else 1.0 / efficiency[j] - 1.0
            level = coulomb[j] + lost * abs(torque)
            way = min(1.0, max(-1.0, velocity[t, j] / slow))
            out[t, j] = give[j] * (torque + part * level * way + drag[j] * velocity[t, j])
