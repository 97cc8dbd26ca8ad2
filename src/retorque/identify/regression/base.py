"""Base parameters: the combinations of a robot's parameters that any motion could ever reveal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import qr, solve_triangular

from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.presliding import DISTANCES
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class BaseParameters:
    """base = combination @ vector; the torque depends on a parameter vector through these numbers only."""

    names: tuple[str, ...]
    """Each combination in words, such as "Izz link1 + Iyy link2 + 0.1 m link3"."""
    independent: Array
    """(rank,) the parameter that leads each combination, so that Y vector = Y[:, independent] base."""
    dependent: Array
    """(size - rank,) the parameters that are seen only inside combinations, or never."""
    combination: Array
    """(rank, size)"""
    unseen: tuple[str, ...]
    """Parameters that no motion reveals at all."""
    shared: tuple[str, ...]
    """Parameters that are seen only inside a sum with others."""

    @property
    def rank(self) -> int:
        return len(self.independent)

    def lift(self, base: Array, card: Array) -> Array:
        """A full vector with these base parameters, the dependent parameters staying at the card's."""
        vector = card.copy()
        vector[self.independent] = base - self.combination[:, self.dependent] @ card[self.dependent]
        return vector


def _random_motion(layout: Layout, samples: int, seed: int) -> Motion:
    rng = np.random.default_rng(seed)
    shape = (samples, layout.robot.n)
    q, qd, qdd = rng.uniform(-np.pi, np.pi, shape), rng.uniform(-3.0, 3.0, shape), rng.uniform(-9.0, 9.0, shape)
    slip = rng.uniform(-1.0, 1.0, (*shape, len(DISTANCES)))
    return Motion(q=q, qd=qd, qdd=qdd, torque=np.zeros(shape), time=np.arange(samples, dtype=float), slip=slip)


def base_parameters(layout: Layout, seed: int = 0, tolerance: float = 1e-8) -> BaseParameters:
    """The base parameters of a robot's structure, by rank-revealing QR of its regressor at random states.

    The rank comes from a QR with column pivoting. The columns are then taken in their own order, each kept when it is
    not a combination of those kept before, so that parameters are regrouped towards the base as the literature does.
    """
    key = (layout.robot.links, layout.robot.gravity, layout.friction, seed, tolerance)
    return _cached(_Key(key, layout))


class _Key:
    """A cache key that carries the layout but compares by what matters."""

    def __init__(self, key: tuple[object, ...], layout: Layout):
        self.key, self.layout = key, layout

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key


@lru_cache(maxsize=16)
def _cached(key: _Key) -> BaseParameters:
    layout, seed, tolerance = key.layout, key.key[3], key.key[4]
    assert isinstance(seed, int) and isinstance(tolerance, float)
    samples = max(60, 3 * layout.size // layout.robot.n)
    matrix = layout.matrix(RigidBody(layout.robot), _random_motion(layout, samples, seed)).reshape(-1, layout.size)
    scale = np.linalg.norm(matrix, axis=0)
    seen = scale > tolerance * np.max(scale)
    matrix = matrix / np.where(seen, scale, 1.0)
    pivots = np.abs(np.diagonal(qr(matrix, mode="r", pivoting=True)[0]))
    rank = int(np.sum(pivots > tolerance * pivots[0]))
    triangle = qr(matrix, mode="r")[0][: layout.size]
    kept = _independent_columns(triangle, seen, tolerance)[:rank]
    rest = np.setdiff1d(np.arange(layout.size), kept)
    rotation, factor = qr(triangle[:, kept], mode="economic")
    solved = solve_triangular(factor, rotation.T @ triangle[:, rest])
    combination = np.zeros((len(kept), layout.size))
    combination[np.arange(len(kept)), kept] = 1.0
    combination[:, rest] = solved * np.where(seen, scale, 0.0)[rest] / scale[kept][:, None]
    combination[np.abs(combination) < 1e-9] = 0.0
    return BaseParameters(
        names=tuple(_words(row, layout.names, lead) for row, lead in zip(combination, kept, strict=True)),
        independent=kept,
        dependent=rest,
        combination=combination,
        unseen=tuple(layout.names[i] for i in np.flatnonzero(~np.any(combination, axis=0))),
        shared=tuple(layout.names[i] for i in rest if np.any(combination[:, i])),
    )


def _independent_columns(triangle: Array, seen: Array, tolerance: float) -> Array:
    """Columns that are not combinations of earlier kept ones (Gram-Schmidt, twice for accuracy)."""
    basis = np.zeros((triangle.shape[0], 0))
    kept = []
    for index in np.flatnonzero(seen):
        column = triangle[:, index]
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > np.sqrt(tolerance) * 1e-2:
            basis = np.concatenate([basis, rest[:, None] / size], axis=1)
            kept.append(index)
    return np.array(kept)


def _words(row: Array, names: tuple[str, ...], lead: int) -> str:
    text = names[lead]
    for index in np.flatnonzero(row):
        if index == lead:
            continue
        size = abs(row[index])
        factor = "" if np.isclose(size, 1.0, atol=1e-6) else f"{size:.4g} "
        text += f" {'+' if row[index] > 0 else '-'} {factor}{names[index]}"
    return text
