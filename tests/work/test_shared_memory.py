"""Shared arrays: whole reads while another process writes."""

from __future__ import annotations

import multiprocessing

import numpy as np

from retorque.work.shared_memory import SharedArrays

LAYOUT = {"a": (200,), "b": (3, 4)}


def writer(name: str, count: int) -> None:
    block = SharedArrays(LAYOUT, name)
    for k in range(1, count + 1):
        block.write(a=np.full(200, float(k)), b=np.full((3, 4), float(k)))
    block.close()


def test_what_is_written_is_read_and_the_rest_stays() -> None:
    block = SharedArrays(LAYOUT)
    try:
        assert block.read() is None and block.version == 0
        block.write(a=np.arange(200.0), b=2.0)
        block.write(b=np.full((3, 4), 5.0))
        found = block.read()
        assert found is not None and block.version == 2
        np.testing.assert_array_equal(found["a"], np.arange(200.0))
        assert np.all(found["b"] == 5.0)
        found["a"][:] = 0.0  # a copy
        again = block.read()
        assert again is not None and again["a"][1] == 1.0
    finally:
        block.close()
        block.unlink()


def test_reads_beside_a_writer_are_never_mixed() -> None:
    block = SharedArrays(LAYOUT)
    process = multiprocessing.get_context("spawn").Process(target=writer, args=(block.name, 20_000))
    process.start()
    try:
        reads = 0
        while process.is_alive():
            found = block.read()
            if found is not None:
                reads += 1
                values = np.concatenate([found["a"], found["b"].ravel()])
                assert np.all(values == values[0])
        process.join()
        assert process.exitcode == 0 and block.version == 20_000
    finally:
        block.close()
        block.unlink()
