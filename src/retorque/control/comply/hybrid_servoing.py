"""Hybrid force-velocity servoing: which directions are moved, which are pressed, and how stiff each is (equation 13).

After Hou and Mason, An Efficient Closed-Form Method for Optimal Hybrid Force-Velocity Control (ICRA 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

RANK = 1e-9
"""Singular values below this share of the largest are zero."""


@dataclass(frozen=True)
class HybridAction:
    """A hybrid force-velocity action on `actuated` generalized directions."""

    transform: Array
    """(actuated, actuated) rows: force-controlled directions first, then velocity-controlled ones; orthonormal."""
    forces: int
    """How many of the rows are force-controlled."""
    velocity: Array
    """(actuated,) commanded generalized velocity; zero along force-controlled rows."""
    force: Array
    """(actuated,) commanded generalized force; zero along velocity-controlled rows."""


def hybrid_servo(
    jacobian: Array,
    goal: Array,
    target: Array,
    free: int,
    normals: Array,
    least: Array,
    external: Array,
) -> HybridAction:
    """Velocities that reach a goal without working against contacts, and forces that keep them.

    With generalized velocity v = (unactuated, actuated): J v = 0 are the contacts that hold, G v = b the goal. The
    velocity-controlled directions are chosen within the actuated ones so that, with the contacts, they determine the
    goal and are as far from the contacts' constraints as can be; all others are left to force.

    Args:
        jacobian: J (constraints, total).
        goal: G (goals, total).
        target: b (goals,).
        free: how many of the directions are not actuated; they come first.
        normals: (contacts,) which rows of J are contacts' normals.
        least: (contacts,) reactions to hold there [N].
        external: (total,) other generalized forces (gravity).
    """
    total = jacobian.shape[1]
    if goal.shape[1] != total or not np.isfinite(jacobian.sum() + goal.sum() + target.sum()):
        raise RetorqueError("goal and contacts must be finite and speak of the same directions")
    actuated = total - free
    kernel = _null(jacobian)  # (total, freedoms): motions that the contacts allow
    within = goal @ kernel
    turned, scale, kept = np.linalg.svd(within, full_matrices=False)
    needed = int(np.sum(scale > RANK * max(float(np.abs(goal).max(initial=0.0)), 1e-12)))
    amount = (turned[:, :needed].T @ target) / scale[:needed]
    if np.linalg.norm(turned[:, :needed] @ (scale[:needed] * amount) - target) > 1e-6 * (1.0 + np.abs(target).sum()):
        raise RetorqueError("the goal contradicts the contacts; ask for a motion that they allow")
    wanted = kernel @ (kept[:needed].T @ amount)
    # Rows of the goal within what the contacts allow, as directions of the actuated part.
    _, size, rows = np.linalg.svd(within @ kernel[free:].T, full_matrices=True)
    chosen = rows[:needed]
    if needed and (len(size) < needed or size[needed - 1] < RANK):
        raise RetorqueError("the actuated directions cannot bring the goal about; change the contacts")
    others = rows[needed:]
    transform = np.concatenate([others, chosen])
    velocity = chosen.T @ (chosen @ wanted[free:])
    force = _forces(jacobian, normals, least, external, free, others)
    return HybridAction(transform, actuated - needed, velocity, force)


def _forces(jacobian: Array, normals: Array, least: Array, external: Array, free: int, pressed: Array) -> Array:
    """Least actuated forces along `pressed` directions that balance the unactuated part and hold the normals."""
    rows, count, held = len(jacobian), len(pressed), len(normals)
    # Unknown: reactions (constraints,) and forces along the pressed rows (count,).
    matrix = np.zeros((free + count + held, rows + count))
    matrix[:free, :rows] = jacobian[:, :free].T
    matrix[free : free + count, :rows] = pressed @ jacobian[:, free:].T
    matrix[free : free + count, rows:] = np.eye(count)  # the pressed rows are orthonormal
    matrix[np.arange(free + count, free + count + held), normals] = 1.0
    right = np.concatenate([-external[:free], -pressed @ external[free:], least])
    left, size, across = np.linalg.svd(matrix, full_matrices=False)
    scale = np.where(size > RANK * size[0], 1.0 / np.maximum(size, 1e-300), 0.0)
    solution = across.T @ (scale * (left.T @ right))
    return pressed.T @ solution[rows:]


def motion_stiffness(velocity: Array, low: float, high: float) -> Array:
    """k_low 1 + (k_high - k_low) v vᵀ / |v|² (equation 13), (..., 3, 3); soft everywhere where nothing moves."""
    velocity = np.asarray(velocity, dtype=float)
    size = np.sum(velocity**2, axis=-1)[..., None, None]
    outer = velocity[..., :, None] * velocity[..., None, :]
    share = np.divide(outer, size, out=np.zeros_like(outer), where=size > 1e-18)
    return low * np.eye(velocity.shape[-1]) + (high - low) * share


def _null(matrix: Array) -> Array:
    """Orthonormal columns that a matrix sends to zero."""
    _, size, rows = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(size > RANK * max(size.max(initial=0.0), 1e-12)))
    return rows[rank:].T
