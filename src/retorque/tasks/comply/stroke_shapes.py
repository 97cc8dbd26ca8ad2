"""Shapes as strokes on a unit square: heart, star, letters of a vector font, and any SVG path."""

from __future__ import annotations

import re

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

Strokes = list[Array]
"""Polylines (points, 2) within [-0.5, 0.5], x to the right and y up."""

GLYPHS: dict[str, str] = {
    "A": "00 26 40;12 32",
    "B": "00 06 36 45 44 33 03;33 42 41 30 00",
    "C": "45 36 16 05 01 10 30 41",
    "D": "00 06 26 44 42 20 00",
    "E": "46 06 00 40;03 33",
    "F": "46 06 00;03 33",
    "G": "45 36 16 05 01 10 30 41 43 23",
    "H": "06 00;46 40;03 43",
    "I": "16 36;26 20;10 30",
    "J": "46 41 30 10 01",
    "K": "06 00;46 03 40",
    "L": "06 00 40",
    "M": "00 06 23 46 40",
    "N": "00 06 40 46",
    "O": "16 05 01 10 30 41 45 36 16",
    "P": "00 06 36 45 44 33 03",
    "Q": "16 05 01 10 30 41 45 36 16;22 40",
    "R": "00 06 36 45 44 33 03;33 40",
    "S": "45 36 16 05 04 13 33 42 41 30 10 01",
    "T": "06 46;26 20",
    "U": "06 01 10 30 41 46",
    "V": "06 20 46",
    "W": "06 10 23 30 46",
    "X": "06 40;46 00",
    "Y": "06 23 46;23 20",
    "Z": "06 46 00 40",
    "0": "16 05 01 10 30 41 45 36 16;01 45",
    "1": "15 26 20;10 30",
    "2": "05 16 36 45 44 00 40",
    "3": "05 16 36 45 44 33 42 41 30 10 01;33 23",
    "4": "30 36 02 42",
    "5": "46 06 03 33 42 41 30 00",
    "6": "45 36 16 05 01 10 30 41 42 33 13 02",
    "7": "06 46 20",
    "8": "13 04 05 16 36 45 44 33 13 02 01 10 30 41 42 33",
    "9": "01 10 30 41 45 36 16 05 04 13 33 44",
}
"""Strokes of each sign on a grid of 5 by 7: digits x and y of each point, strokes apart by ';'."""


def heart(points: int = 160) -> Strokes:
    """x = 16 sin³ t, y = 13 cos t - 5 cos 2t - 2 cos 3t - cos 4t, begun and ended at the lower tip."""
    t = np.linspace(np.pi, 3.0 * np.pi, points)
    x, y = 16.0 * np.sin(t) ** 3, 13.0 * np.cos(t) - 5.0 * np.cos(2 * t) - 2.0 * np.cos(3 * t) - np.cos(4 * t)
    return fitted([np.stack([x, y], axis=1)])


def star(corners: int = 5) -> Strokes:
    """A star of straight lines through every other corner."""
    angle = 0.5 * np.pi + 4.0 * np.pi / corners * np.arange(corners + 1)
    return fitted([np.stack([np.cos(angle), np.sin(angle)], axis=1)])


def circle(points: int = 80) -> Strokes:
    """Once around."""
    t = np.linspace(0.0, 2.0 * np.pi, points)
    return fitted([np.stack([np.cos(t), np.sin(t)], axis=1)])


def text(words: str) -> Strokes:
    """Letters and digits side by side."""
    strokes: Strokes = []
    for place, sign in enumerate(words.upper()):
        if sign == " ":
            continue
        if sign not in GLYPHS:
            raise unknown("sign of the vector font", sign, GLYPHS)
        for stroke in GLYPHS[sign].split(";"):
            points = np.array([[float(pair[0]) + 6.0 * place, float(pair[1])] for pair in stroke.split()])
            strokes.append(points)
    if not strokes:
        raise RetorqueError("there is nothing to write; give letters or digits")
    return fitted(strokes)


def shape(name: str) -> Strokes:
    """A shape by name (heart, star, circle), `text:WORDS`, or an SVG path such as `M0 0 L1 1`."""
    made = {"heart": heart, "star": star, "circle": circle}
    if name in made:
        return made[name]()
    if name.startswith("text:"):
        return text(name.removeprefix("text:"))
    if re.match(r"\s*[Mm]\s*[-+.\d]", name):
        from retorque.tasks.comply.svg_path import svg_path

        return svg_path(name)
    raise unknown("shape", name, [*made, "text:WORDS", "an SVG path"])


def fitted(strokes: Strokes) -> Strokes:
    """The strokes centred on the unit square, as large as fits."""
    every = np.concatenate(strokes)
    low, high = every.min(axis=0), every.max(axis=0)
    size = float(np.max(high - low))
    if not np.isfinite(every).all() or size <= 0.0:
        raise RetorqueError("a shape needs at least two different points, all finite")
    return [(stroke - 0.5 * (low + high)) / size for stroke in strokes]


def resampled(stroke: Array, spacing: float) -> Array:
    """Points (count, dims) along a polyline at equal distances of about `spacing`."""
    step = np.linalg.norm(np.diff(stroke, axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(step)])
    count = max(2, round(way[-1] / spacing) + 1)
    at = np.linspace(0.0, way[-1], count)
    return np.stack([np.interp(at, way, stroke[:, k]) for k in range(stroke.shape[1])], axis=1)
