"""SVG path data as polylines."""

from __future__ import annotations

import re

import numpy as np

from retorque.tasks.comply.stroke_shapes import Strokes, fitted
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
COUNT = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
PIECES = 24
"""Straight pieces a curve."""
LONGEST = 20_000
"""Characters of path data that are read."""


def svg_path(data: str) -> Strokes:
    """The strokes of path data (M L H V C S Q T A Z, either case), fitted to the unit square, y up."""
    if len(data) > LONGEST:
        raise RetorqueError(f"the SVG path has {len(data)} characters; give at most {LONGEST}")
    if re.sub(rf"{NUMBER}|[MmLlHhVvCcSsQqTtAaZz]|[\s,]", "", data):
        raise RetorqueError("the SVG path holds something that is no command and no number; check its d attribute")
    strokes: Strokes = []
    points: list[Array] = []
    at, start, control = np.zeros(2), np.zeros(2), np.zeros(2)
    last = ""
    for letter, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*(?:[eE][-+]?\d+[^A-Za-z]*)*)", data):
        values = [float(x) for x in re.findall(NUMBER, numbers)]
        kind, relative = letter.upper(), letter.islower()
        need = COUNT[kind]
        if (need == 0 and values) or (need and (not values or len(values) % need)):
            raise RetorqueError(f"'{letter}' of the SVG path needs numbers in groups of {need}, not {len(values)}")
        groups = [values[k : k + need] for k in range(0, len(values), need)] if need else [[]]
        for index, group in enumerate(groups):
            origin = at if relative else np.zeros(2)
            if kind == "Z":
                points.append(start.copy())
                at = start.copy()
            elif kind == "M" and index == 0:
                if len(points) > 1:
                    strokes.append(np.array(points))
                at = start = origin + group
                points = [at.copy()]
            else:
                new, control = _segment(kind, np.array(group), at, origin, relative, control, last)
                points.extend(new)
                at = points[-1].copy()
            last = kind
    if len(points) > 1:
        strokes.append(np.array(points))
    if not strokes:
        raise RetorqueError("the SVG path draws nothing; it begins with M and goes on with L, C, ...")
    return fitted([stroke * [1.0, -1.0] for stroke in strokes])


def _segment(
    kind: str, g: Array, at: Array, origin: Array, relative: bool, control: Array, last: str
) -> tuple[list[Array], Array]:
    """Points after `at`, and the control point that a smooth successor mirrors."""
    t = np.linspace(0.0, 1.0, PIECES + 1)[1:, None]
    if kind in ("M", "L"):
        return [origin + g], origin + g
    if kind == "H":
        end = np.array([g[0] + (at[0] if relative else 0.0), at[1]])
        return [end], end
    if kind == "V":
        end = np.array([at[0], g[0] + (at[1] if relative else 0.0)])
        return [end], end
    if kind in ("C", "S"):
        mirrored = 2.0 * at - control if last in ("C", "S") else at
        first = origin + g[:2] if kind == "C" else mirrored
        second, end = origin + g[-4:-2], origin + g[-2:]
        curve = (1 - t) ** 3 * at + 3 * (1 - t) ** 2 * t * first + 3 * (1 - t) * t**2 * second + t**3 * end
        return list(curve), second
    if kind in ("Q", "T"):
        mirrored = 2.0 * at - control if last in ("Q", "T") else at
        middle = origin + g[:2] if kind == "Q" else mirrored
        end = origin + g[-2:]
        return list((1 - t) ** 2 * at + 2 * (1 - t) * t * middle + t**2 * end), middle
    end = origin + g[5:]
    return _arc(at, end, abs(g[0]), abs(g[1]), np.deg2rad(g[2]), g[3] != 0.0, g[4] != 0.0), end


def _arc(a: Array, b: Array, rx: float, ry: float, turn: float, large: bool, sweep: bool) -> list[Array]:
    """An elliptical arc from a to b by its centre (SVG 1.1, F.6.5)."""
    if rx == 0.0 or ry == 0.0 or np.allclose(a, b):
        return [b]
    c, s = np.cos(turn), np.sin(turn)
    into = np.array([[c, s], [-s, c]])
    half = into @ (0.5 * (a - b))
    scale = max(1.0, float(np.sqrt((half[0] / rx) ** 2 + (half[1] / ry) ** 2)))
    rx, ry = rx * scale, ry * scale
    under = (rx * ry) ** 2 - (rx * half[1]) ** 2 - (ry * half[0]) ** 2
    root = np.sqrt(max(0.0, under) / ((rx * half[1]) ** 2 + (ry * half[0]) ** 2))
    centre = (1.0 if large != sweep else -1.0) * root * np.array([rx * half[1] / ry, -ry * half[0] / rx])
    begin = np.arctan2((half[1] - centre[1]) / ry, (half[0] - centre[0]) / rx)
    finish = np.arctan2((-half[1] - centre[1]) / ry, (-half[0] - centre[0]) / rx)
    sweep_angle = (finish - begin) % (2 * np.pi) if sweep else -((begin - finish) % (2 * np.pi))
    angle = begin + sweep_angle * np.linspace(0.0, 1.0, PIECES + 1)[1:]
    local = np.stack([rx * np.cos(angle), ry * np.sin(angle)], axis=1) + centre
    return list(local @ into + 0.5 * (a + b))
