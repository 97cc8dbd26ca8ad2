"""How a robot is wired: a TOML file as a dataclass, unknown words refused."""

from __future__ import annotations

import tomllib
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from retorque.work.errors import RetorqueError, unknown


class Wiring(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=Wiring)


def read_wiring(path: Path | None, kind: type[T]) -> T:
    """The wiring in a file, of a dataclass with defaults; None: the defaults."""
    if path is None:
        return kind()
    try:
        content = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RetorqueError(f"the wiring file '{path}' cannot be read: {error}") from error
    known = {field.name: field for field in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key not in known:
            raise unknown(f"entry of the wiring file '{path}'", key, known)
        values[key] = tuple(value) if isinstance(value, list) else value
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise RetorqueError(f"the wiring file '{path}' holds something of the wrong type ({error})") from error


def numbers(name: str, values: tuple[Any, ...], n: int, default: float) -> list[float]:
    """One finite number a joint: as given, or the default for all."""
    if not values:
        return [default] * n
    if len(values) != n or not all(isinstance(x, (int, float)) and x == x and abs(x) < 1e12 for x in values):
        raise RetorqueError(f"'{name}' in the wiring must be {n} finite numbers, one a joint")
    return [float(x) for x in values]
