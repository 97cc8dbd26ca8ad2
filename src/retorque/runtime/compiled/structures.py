"""The core's structures as its header declares them: what Python fills in and what `export c` writes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Union

import numpy as np

from retorque.runtime.compiled.build import SOURCES
from retorque.work.array import Array

Value = Union[int, float, Array, "Constants"]
Constants = Mapping[str, Value]
"""A structure's fields by name; nested structures are mappings themselves."""

ELEMENTS: dict[str, tuple[type[ctypes._SimpleCData[Any]], type]] = {
    "int": (ctypes.c_int, np.intc),
    "double": (ctypes.c_double, float),
    "float": (ctypes.c_float, np.float32),
}
"""C's types and NumPy's."""


@dataclass(frozen=True)
class Field:
    """One field of a structure."""

    name: str
    kind: str
    """An element's type, or the name of a structure."""
    pointer: bool
    length: int
    """Of an array within the structure; 0: a single value."""


@cache
def layouts() -> dict[str, tuple[Field, ...]]:
    """The fields of every structure of the public header."""
    text = re.sub(r"/\*.*?\*/", "", (SOURCES / "retorque.h").read_text(), flags=re.S)
    sizes = {name: int(value) for name, value in re.findall(r"#define (RT_\w+) (\d+)", text)}
    found = {}
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text, flags=re.S):
        fields: list[Field] = []
        for line in body.split(";"):
            if line.strip():
                fields += _fields(" ".join(line.split()), sizes)
        found[name] = tuple(fields)
    return found


def _fields(line: str, sizes: dict[str, int]) -> list[Field]:
    kind, names = line.removeprefix("const ").split(" ", 1)
    out = []
    for part in names.split(","):
        match = re.fullmatch(r"(\**)(\w+)(?:\[(\w+)\])?", part.strip())
        assert match is not None, line
        stars, name, length = match.groups()
        count = 0 if length is None else sizes.get(length) or int(length)
        out.append(Field(name, kind, bool(stars), count))
    return out


@cache
def structure(name: str) -> type[ctypes.Structure]:
    """A structure as ctypes has it."""
    fields: list[tuple[str, type]] = []
    for field in layouts()[name]:
        if field.pointer:
            fields.append((field.name, ctypes.c_void_p))
            continue
        if field.length:
            fields.append((field.name, ELEMENTS[field.kind][0] * field.length))
        else:
            fields.append((field.name, ELEMENTS[field.kind][0] if field.kind in ELEMENTS else structure(field.kind)))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def tidy(field: Field, value: Value) -> Array:
    """An array as its field wants it: the element's type, rows in order."""
    return np.ascontiguousarray(value, dtype=ELEMENTS[field.kind][1])


def filled(name: str, constants: Constants) -> tuple[ctypes.Structure, list[Array]]:
    """A structure with these constants, and the arrays that it points to: keep them as long as it lives."""
    out = structure(name)()
    kept: list[Array] = []
    for field in layouts()[name]:
        value = constants.get(field.name)
        if value is None:
            continue  # another adapter's part: zeros
        if isinstance(value, Mapping):
            inner, arrays = filled(field.kind, value)
            setattr(out, field.name, inner)
            kept += arrays
        elif field.pointer:
            array = tidy(field, value)
            kept.append(array)
            setattr(out, field.name, array.ctypes.data)
        elif field.length:
            getattr(out, field.name)[:] = tidy(field, value).tolist()
        else:
            setattr(out, field.name, value)
    return out, kept
