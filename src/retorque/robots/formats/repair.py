"""Bodies with inertias that no body has, as field URDFs hold them: each becomes the nearest body that could exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from retorque.robots.formats.tree import Body
from retorque.work.array import Array

THIN = 0.005
"""Radius of gyration that a repaired body has at least along each of its axes [m]."""


def repaired(bodies: Sequence[Body]) -> tuple[list[Body], list[str]]:
    """The bodies, each of them possible, and a sentence for those that had to be changed.

    A body can exist exactly when the second moments of its mass, S = ½ tr(I) 1 - I, are positive. The nearest such
    matrix lifts the eigenvalues that are not.
    """
    out, names = [], []
    for body in bodies:
        if body.mass > 0.0 and np.any(body.inertia) and not _possible(body.inertia):
            names.append(body.name)
            body = replace(body, inertia=nearest_inertia(body.mass, body.inertia))
        out.append(body)
    said = f"inertias that no body has, replaced by the nearest possible: {', '.join(names)}"
    return out, [said] if names else []


def _possible(inertia: Array) -> bool:
    values = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    return bool(values[0] > 0.0)


def nearest_inertia(mass: float, inertia: Array) -> Array:
    """The inertia (3, 3) [kg·m²] of the nearest body of that mass that could exist."""
    symmetric = 0.5 * (inertia + inertia.T)
    values, vectors = np.linalg.eigh(0.5 * np.trace(symmetric) * np.eye(3) - symmetric)
    moments = (vectors * np.maximum(values, mass * THIN**2)) @ vectors.T
    return np.trace(moments) * np.eye(3) - moments
