"""The table in a cloud of points, and what stands on it (TAM, E.1)."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

WORKSPACE = np.array([[0.20, 0.90], [-0.50, 0.50], [-0.05, 0.40]])
"""What is looked at, in the base's axes [m]."""
THICKNESS = 0.01
"""Points this close to the plane are the table's [m]."""
TRIES = 60
LEAST, SHARE = 30, 0.15
"""Points, and share of the cloud, that a table has at least."""
LEVEL = 0.94
"""Least vertical part of the plane's normal."""


def cropped(cloud: Array) -> Array:
    """The finite points (k, 3) of a cloud (n, 3) that lie in the workspace."""
    cloud = np.asarray(cloud, dtype=float).reshape(-1, 3)
    with np.errstate(invalid="ignore"):
        inside = ((cloud > WORKSPACE[:, 0]) & (cloud < WORKSPACE[:, 1])).all(axis=-1)
    return cloud[inside]


def table_plane(cloud: Array, rng: np.random.Generator) -> tuple[Array, float] | None:
    """Normal (3,), upwards, and height n · x = d of the largest level plane by RANSAC; None where there is none."""
    if len(cloud) < LEAST:
        return None
    best, most = None, max(LEAST, int(SHARE * len(cloud)))
    for _ in range(TRIES):
        a, b, c = cloud[rng.integers(0, len(cloud), 3)]
        normal = np.cross(b - a, c - a)
        length = np.linalg.norm(normal)
        if length < 1e-6:
            continue
        normal = normal / length if normal[2] > 0.0 else -normal / length
        if normal[2] < LEVEL:
            continue
        found = np.abs(cloud @ normal - normal @ a) < THICKNESS
        if np.count_nonzero(found) > most:
            best, most = found, int(np.count_nonzero(found))
    if best is None:
        return None
    centre = cloud[best].mean(axis=0)
    normal = np.linalg.svd(cloud[best] - centre, full_matrices=False)[2][-1]
    normal = normal if normal[2] > 0.0 else -normal
    return normal, float(normal @ centre)


def above_table(cloud: Array, rng: np.random.Generator) -> Array | None:
    """What stands on the table, (k, 3); None where no table is seen."""
    points = cropped(cloud)
    plane = table_plane(points, rng)
    if plane is None:
        return None
    normal, height = plane
    return points[points @ normal - height > THICKNESS]
