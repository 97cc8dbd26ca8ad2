"""Bytes that travel: any record of arrays comes back bit for bit, any other bytes are refused."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from retorque.work.array import read_only
from retorque.work.errors import RetorqueError
from retorque.work.records import pack_record, unpack_record
from retorque.work.shared_memory import SharedQueue, SharedRecord
from retorque.work.tensors import checksum, load_tensors, save_tensors

KINDS = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "<u2", "|u1", "|b1"])
ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    KINDS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))),
    max_size=4,
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> bool:
    """The same names, types, shapes and bits: also of what is not a number."""
    return found.keys() == wanted.keys() and all(
        (found[name].dtype, found[name].shape, found[name].tobytes()) == (array.dtype, array.shape, array.tobytes())
        for name, array in wanted.items()
    )


@QUICK
@given(record=ARRAYS)
def test_any_arrays_come_back_bit_for_bit(record: dict[str, np.ndarray]) -> None:
    packed = pack_record(record)
    assert same(unpack_record(packed), record) and len(packed) % 8 == 0


@QUICK
@given(record=ARRAYS, cut=st.floats(0.0, 1.0), flips=st.lists(st.tuples(st.floats(0.0, 0.999), st.integers(1, 255))))
def test_bytes_that_were_changed_never_crash_the_reader(
    record: dict[str, np.ndarray], cut: float, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(pack_record(record))
    for at, bits in flips:
        data[int(at * len(data))] ^= bits
    try:
        found = unpack_record(bytes(data[: int(cut * len(data))]))
    except RetorqueError as error:
        assert "no record of arrays" in str(error)
        return
    assert all(isinstance(array, np.ndarray) for array in found.values())


@QUICK
@given(record=ARRAYS, seed=st.integers(0, 99))
def test_a_file_of_arrays_is_the_same_in_any_order_of_names(
    record: dict[str, np.ndarray], seed: int, tmp_path: Path
) -> None:
    names = list(record)
    np.random.default_rng(seed).shuffle(names)
    mixed = {name: record[name] for name in names}
    assert checksum(mixed) == checksum(record)
    path = save_tensors(tmp_path / "a", mixed, "a test", 1, {"seed": seed})
    found, header = load_tensors(path, "a test", 1)
    assert same(found, record) and header == {"seed": seed}


def test_a_checksum_sees_names_types_shapes_and_signs() -> None:
    base = {"a": np.zeros(4)}
    others = (
        {"b": np.zeros(4)},
        {"a": np.zeros(4, dtype=np.float32)},
        {"a": np.zeros((2, 2))},
        {"a": -np.zeros(4)},
        {"a": np.zeros(4), "b": np.zeros(0)},
    )
    assert len({checksum(record) for record in (base, *others)}) == 6


@QUICK
@given(
    size=st.integers(1, 5),
    acts=st.lists(st.sampled_from(["add", "add", "take", "read"]), max_size=40),
)
def test_a_shared_queue_is_a_queue_that_refuses_when_full(size: int, acts: list[str]) -> None:
    """Against a plain queue: nothing lost, nothing twice, nothing out of order, and refusals counted."""
    model: deque[float] = deque()
    taken = refused = 0
    with SharedQueue(size, 2) as writer, SharedQueue(path=writer.path) as reader:
        for number, act in enumerate(acts):
            if act == "add":
                room = writer.add(np.array([number, -number], dtype=float))
                assert room == (len(model) < size)
                if room:
                    model.append(number)
                refused += not room
            elif act == "take" and model:
                model.popleft()
                taken += 1
                reader.take(taken)
            assert reader.waiting()[:, 0].tolist() == list(model)
            assert (reader.taken, writer.refused) == (taken, refused)


@QUICK
@given(contents=st.lists(st.binary(max_size=20), max_size=8))
def test_a_shared_record_holds_the_last_that_was_published(contents: list[bytes]) -> None:
    with SharedRecord(20) as writer, SharedRecord(path=writer.path) as reader:
        for version, content in enumerate(contents, start=1):
            assert writer.publish(content) == version
            assert reader.newest() == (version, content) and reader.newest(after=version) is None


def test_read_only_numbers_are_a_copy_that_nobody_changes() -> None:
    given = np.arange(3.0)
    kept = read_only(given)
    given[0] = 9.0
    assert kept[0] == 0.0 and read_only(kept) is kept
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1.0
    view = np.arange(4.0)[:2]
    view.flags.writeable = False
    assert read_only(view) is not view  # its owner could still change it
