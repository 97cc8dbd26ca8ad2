"""What a residual network sees of each joint: where it is, how it moves, and what it carries."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

VELOCITY_KNEE = 0.02
"""Velocity above which the network sees it on a logarithmic scale [rad/s]."""
ACCELERATION_KNEE = 0.2
"""The same of accelerations [rad/s²]."""
COUNT = 7
"""Features a joint."""


def features(q: Array, qd: Array, qdd: Array, load: Array) -> Array:
    """(..., n, COUNT) of each joint, from positions, velocities, accelerations and modelled torques (..., n).

    A joint listens to itself alone: friction and gears belong to a joint, and a network that sees the whole arm learns
    the few recorded paths by heart. What the rest of the arm does to it comes in as the modelled torque.
    """
    columns = (
        np.sin(q),
        np.cos(q),
        np.arcsinh(qd / VELOCITY_KNEE),
        np.tanh(qd / VELOCITY_KNEE),
        np.arcsinh(qdd / ACCELERATION_KNEE),
        load,
        np.tanh(qd / VELOCITY_KNEE) * np.abs(load),
    )
    return np.stack(columns, axis=-1)
