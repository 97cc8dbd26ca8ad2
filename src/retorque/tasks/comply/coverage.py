"""Wiping: strokes that sweep a rectangle, and how much of it a tool of some width has covered."""

from __future__ import annotations

import numpy as np

from retorque.tasks.comply.stroke_shapes import Strokes
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def sweep(width: float, height: float, tool: float, overlap: float = 0.3, beyond: float = 0.0) -> Strokes:
    """One stroke to and fro over a rectangle, lanes apart by the tool's width less the overlap.

    Args:
        width: of the rectangle, as a share of the unit square.
        height: the same.
        tool: width of the tool in the same measure.
        overlap: share of a lane that the next one wipes again.
        beyond: how far the tool's edge runs over the rectangle's, as a share of the tool.
    """
    if not (tool > 0.0 and 0.0 < width <= 1.0 and 0.0 < height <= 1.0 and 0.0 <= overlap < 1.0):
        raise RetorqueError("a sweep needs a tool wider than 0, a rectangle within the unit square, an overlap below 1")
    reach = max(height - tool * (1.0 - 2.0 * beyond), 0.0)
    lanes = 1 + int(np.ceil(reach / (tool * (1.0 - overlap))))
    heights = np.linspace(0.5 * reach, -0.5 * reach, lanes)
    side = 0.5 * max(width - tool * (1.0 - 2.0 * beyond), 0.0) + 1e-6
    points = []
    for lane, y in enumerate(heights):
        ends = (-side, side) if lane % 2 == 0 else (side, -side)
        points += [(ends[0], y), (ends[1], y)]
    return [np.array(points)]


def wiped(path: Array, width: float, height: float, tool: float, cells: int = 60) -> Array:
    """Which cells (cells, cells) of a rectangle lie within half a tool's width of a path (points, 2); rows go up."""
    x, y = np.meshgrid(
        (np.arange(cells) + 0.5) / cells * width - 0.5 * width, (np.arange(cells) + 0.5) / cells * height - 0.5 * height
    )
    ground = np.stack([x.ravel(), y.ravel()], axis=1)
    near = np.zeros(len(ground), dtype=bool)
    for start in range(0, len(path), 200):
        part = path[start : start + 200]
        away = np.linalg.norm(ground[:, None] - part[None], axis=-1).min(axis=1)
        near |= away <= 0.5 * tool
    return near.reshape(cells, cells)


def covered(path: Array, width: float, height: float, tool: float, cells: int = 60) -> float:
    """Share of a rectangle within half a tool's width of a path (points, 2)."""
    return float(wiped(path, width, height, tool, cells).mean())
