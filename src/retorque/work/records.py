"""Named arrays as one piece of bytes and back: how a record travels through shared memory or a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

KINDS = "fiub"
"""Kinds of numbers that travel: float, integer, unsigned, truth."""
LONGEST_HEAD = 1 << 16
ALIGNED = 8


def pack_record(arrays: Mapping[str, Array]) -> bytes:
    """Arrays by name as bytes: the length of a JSON head, the head, then the numbers, each array aligned to 8 bytes."""
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    head = json.dumps([[name, array.dtype.str, array.shape] for name, array in plain.items()]).encode()
    head += b" " * (-(len(head) + ALIGNED) % ALIGNED)
    parts = [len(head).to_bytes(ALIGNED, "little"), head]
    for array in plain.values():
        data = array.tobytes()
        parts += [data, bytes(-len(data) % ALIGNED)]
    return b"".join(parts)


def unpack_record(data: bytes) -> dict[str, Array]:
    """The arrays in bytes, read-only; what is no record is refused."""
    try:
        length = int.from_bytes(data[:ALIGNED], "little")
        if not 0 < length <= LONGEST_HEAD:
            raise ValueError("no head")
        position, found = ALIGNED + length, {}
        for name, kind, shape in json.loads(data[ALIGNED:position]):
            dtype, count = np.dtype(str(kind)), prod(int(size) for size in shape)
            if dtype.kind not in KINDS or count < 0:
                raise ValueError(f"'{name}' is no array of numbers")
            array = np.frombuffer(data, dtype, count, position).reshape(shape)
            array.flags.writeable = False
            found[str(name)] = array
            size = count * dtype.itemsize
            position += size + -size % ALIGNED
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise RetorqueError(f"these bytes hold no record of arrays ({error}); send them with pack_record") from error
    return found
