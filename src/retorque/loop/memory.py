"""Everything that an adapter has learnt, as arrays by name and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from retorque.loop.belief import Belief
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def collect(thing: Any, prefix: str = "") -> dict[str, Array]:
    """The attributes that `thing.remembered` names, and those of what they hold, as arrays."""
    found: dict[str, Array] = {}
    for name in thing.remembered:
        value, key = getattr(thing, name), f"{prefix}{name}"
        if hasattr(value, "remembered"):
            found.update(collect(value, f"{key}."))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                found.update(collect(item, f"{key}.{index}."))
        elif isinstance(value, Belief):
            found[f"{key}.time"] = np.array(value.time)
            found.update({f"{key}.arrays.{part}": array for part, array in value.arrays.items()})
        elif isinstance(value, dict):
            found.update({f"{key}.{part}": array for part, array in value.items()})
        elif isinstance(value, np.random.Generator):
            state = json.dumps(value.bit_generator.state).encode()
            found[key] = np.frombuffer(state, dtype=np.uint8)
        elif isinstance(value, bool | int | float | np.ndarray | np.generic):
            found[key] = np.asarray(value)
        else:
            raise RetorqueError(f"'{key}' is a {type(value).__name__}, which says nothing about what to remember of it")
    return found


def restore(thing: Any, arrays: Mapping[str, Array], prefix: str = "") -> None:
    """Put back what `collect` found; what does not fit is refused."""
    for name in thing.remembered:
        value, key = getattr(thing, name), f"{prefix}{name}"
        if hasattr(value, "remembered"):
            restore(value, arrays, f"{key}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                restore(item, arrays, f"{key}.{index}.")
        elif isinstance(value, Belief):
            parts = {part: _like(array, arrays, f"{key}.arrays.{part}") for part, array in value.arrays.items()}
            time = float(_like(np.array(value.time), arrays, f"{key}.time"))
            setattr(thing, name, Belief.of(value.kind, time, **parts))
        elif isinstance(value, dict):
            setattr(thing, name, {part: _like(array, arrays, f"{key}.{part}") for part, array in value.items()})
        elif isinstance(value, np.random.Generator):
            value.bit_generator.state = json.loads(_found(arrays, key).tobytes().decode())
        elif isinstance(value, np.ndarray):
            setattr(thing, name, _like(value, arrays, key))
        else:
            setattr(thing, name, _number(arrays, key))


def _found(arrays: Mapping[str, Array], key: str) -> Array:
    if key not in arrays:
        raise RetorqueError(f"the file lacks '{key}'; it was saved by another adapter or version, so learn anew")
    return arrays[key]


def _number(arrays: Mapping[str, Array], key: str) -> float | int | bool:
    """One number, of the kind that was saved: a count may begin as minus infinity."""
    array = _found(arrays, key)
    if array.shape != () or array.dtype.kind not in "bif":
        raise RetorqueError(f"'{key}' in the file is {array.dtype}{list(array.shape)}, not one number; learn anew")
    return array.item()


def _like(value: Array, arrays: Mapping[str, Array], key: str) -> Array:
    """The array of that name, of the same shape and type as the one it replaces, in memory of its own."""
    array = _found(arrays, key)
    if array.shape != value.shape or array.dtype != value.dtype:
        raise RetorqueError(
            f"'{key}' in the file is {array.dtype}{list(array.shape)}, not {value.dtype}{list(value.shape)}; it was "
            "saved for other trials, another rate or other settings"
        )
    return np.array(array)
