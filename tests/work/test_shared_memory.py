"""Shared memory: whole records, rows in order, and neither side ever waits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from retorque.work.errors import RetorqueError
from retorque.work.records import pack_record, unpack_record
from retorque.work.shared_memory import SharedBlock, SharedQueue, SharedRecord


def test_a_record_of_arrays_comes_back_as_it_was() -> None:
    arrays = {
        "mean": np.linspace(0.0, 1.0, 7).reshape(1, 7),
        "codes": np.array([3, 5], dtype=np.int32),
        "flag": np.array(True),
        "none": np.zeros((0, 4)),
        "turned": np.arange(6.0).reshape(2, 3).T,
    }
    found = unpack_record(pack_record(arrays))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)
        assert not found[name].flags.writeable


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_what_is_no_record_is_refused_in_a_sentence(cut: int) -> None:
    data = pack_record({"a": np.arange(5.0)})
    with pytest.raises(RetorqueError, match="no record"):
        unpack_record(data[:cut])
    with pytest.raises(RetorqueError, match="no record"):
        unpack_record(b"\xff" * 64)


def test_only_the_newest_version_is_read_and_only_once() -> None:
    with SharedRecord(100) as ours, SharedRecord(path=ours.path) as theirs:
        assert theirs.newest() is None
        for k in range(10):
            assert ours.publish(bytes([k] * (k + 1))) == k + 1
        assert theirs.newest() == (10, bytes([9] * 10))
        assert theirs.newest(after=10) is None
        with pytest.raises(RetorqueError, match="does not fit"):
            ours.publish(bytes(101))


def test_half_a_record_is_never_read() -> None:
    with SharedRecord(100) as ours, SharedRecord(path=ours.path) as theirs:
        ours.publish(b"good" * 10)
        at = ours._at(1)
        ours.memory[at + 40] ^= 1  # a byte of the data, as a torn write leaves it
        assert theirs.newest() is None
        ours.publish(b"next")
        assert theirs.newest() == (2, b"next")


def test_a_reader_in_another_process_sees_whole_records_only() -> None:
    """The writer publishes records of one repeated byte as fast as it can; the reader finds none that is mixed."""
    program = (
        "import sys\n"
        "from retorque.work.shared_memory import SharedRecord\n"
        "record, seen, last = SharedRecord(path=sys.argv[1]), 0, 0\n"
        "print('ready', flush=True)\n"
        "while seen < 40:\n"
        "    found = record.newest(last)\n"
        "    if found:\n"
        "        assert found[0] > last and len(set(found[1])) == 1, 'mixed'\n"
        "        last, seen = found[0], seen + 1\n"
        "print('done', flush=True)\n"
    )
    with SharedRecord(20_000) as record:
        reader = subprocess.Popen([sys.executable, "-c", program, record.path], stdout=subprocess.PIPE, text=True)
        assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        k = 0
        while reader.poll() is None:
            record.publish(bytes([k % 251]) * 20_000)
            k += 1
        assert reader.stdout.read() == "done\n" and reader.returncode == 0
        reader.stdout.close()


def test_rows_arrive_in_order_and_a_full_ring_counts_what_it_refuses() -> None:
    with SharedQueue(8, 3) as ours, SharedQueue(path=ours.path) as theirs:
        assert [ours.add(np.full(3, float(k))) for k in range(10)] == [True] * 8 + [False] * 2
        assert ours.refused == 2
        rows = theirs.waiting()
        assert rows[:, 0].tolist() == list(range(8))
        theirs.take(5)
        assert [ours.add(np.full(3, 10.0 + k)) for k in range(6)] == [True] * 5 + [False]
        assert theirs.waiting()[:, 0].tolist() == [5, 6, 7, 10, 11, 12, 13, 14]


def test_a_block_of_another_kind_or_nowhere_is_refused() -> None:
    with SharedBlock(4096) as block:
        with pytest.raises(RetorqueError, match="no shared queue"):
            SharedQueue(path=block.path)
        with pytest.raises(RetorqueError, match="no shared record"):
            SharedRecord(path=block.path)
    with pytest.raises(RetorqueError, match="cannot share memory"):
        SharedQueue(path="/proc/1/fd/nothing")
