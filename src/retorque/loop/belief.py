"""What an estimate hands to the tick: an immutable record of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from retorque.work.array import Array


@dataclass(frozen=True, slots=True)
class Belief:
    """All that a correction needs of what was learnt; made by `learn`, swapped in by `adopt`, never changed."""

    kind: str
    """Whose it is: the adapter's class."""
    time: float
    """Of the newest report that it rests on [s]."""
    arrays: Mapping[str, Array]
    """By name, each read-only."""

    @classmethod
    def of(cls, kind: str, time: float, **arrays: Array) -> Belief:
        """A belief that takes over these arrays: nobody may write to them from here on."""
        for array in arrays.values():
            array.flags.writeable = False
        return cls(kind, time, MappingProxyType(arrays))
