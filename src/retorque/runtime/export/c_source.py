"""A core's constants as C: one file that a compiler reads instead of Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from retorque.runtime.compiled.structures import Constants, Field, layouts, tidy
from retorque.work.array import Array

WIDTH = 8
"""Numbers in a line."""


def model_source(constants: Constants) -> str:
    """`model.c`: a `const rt_model retorque_model` with these constants."""
    arrays: list[str] = []
    body = "\n".join(_structure("rt_model", constants, "rt_model", arrays, "  "))
    return (
        '/* Written by `retorque export c`: the robot, the adapter and its weights. */\n#include "model.h"\n\n'
        "#include <math.h>\n\n" + "\n".join(arrays) + f"\nconst rt_model retorque_model = {{\n{body}\n}};\n"
    )


def _structure(kind: str, constants: Constants, name: str, arrays: list[str], indent: str) -> Iterator[str]:
    """The initialiser's lines, in the header's order; arrays are written beside it."""
    for field in layouts()[kind]:
        value = constants.get(field.name)
        label = f" /* {field.name} */"
        if field.kind in layouts():
            inner = value if isinstance(value, Mapping) else {}
            lines = _structure(field.kind, inner, f"{name}_{field.name}", arrays, indent + "  ")
            yield f"{indent}{{{label}\n" + "\n".join(lines) + f"\n{indent}}},"
        elif field.pointer:
            place = f"{name}_{field.name}"
            if value is not None:
                arrays.append(_array(field, place, tidy(field, value)))
            yield f"{indent}{'NULL' if value is None else place},{label}"
        elif field.length:
            numbers = np.zeros(field.length) if value is None else tidy(field, value)
            yield f"{indent}{{{', '.join(_number(field, x) for x in numbers.ravel())}}},{label}"
        else:
            assert not isinstance(value, Mapping | np.ndarray)
            yield f"{indent}{_number(field, 0 if value is None else value)},{label}"


def _array(field: Field, name: str, values: Array) -> str:
    numbers = [_number(field, x) for x in values.ravel()] or ["0"]
    rows = [", ".join(numbers[k : k + WIDTH]) for k in range(0, len(numbers), WIDTH)]
    return f"static const {field.kind} {name}[] = {{\n  " + ",\n  ".join(rows) + "};\n"


def _number(field: Field, value: float) -> str:
    """A number as C reads it back, bit for bit."""
    if field.kind == "int":
        return str(int(value))
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else ("INFINITY" if value > 0 else "-INFINITY")
    text = f"{float(value):.17g}" if field.kind == "double" else f"{float(value):.9g}"
    text = text if any(mark in text for mark in ".e") else text + ".0"
    return text if field.kind == "double" else text + "f"
