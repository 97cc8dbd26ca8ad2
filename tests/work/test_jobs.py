"""Jobs: results in order wherever they are done, and failures as sentences."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, run_jobs

MODULE = """
import os, time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from retorque.work.errors import RetorqueError
from retorque.work.jobs import report

def slow_square(number, seconds=0.0):
    time.sleep(seconds)
    report(1)
    return number * number

def noted(log, number):
    with open(log, "a") as file:
        file.write(f"{number} ")
    report(1)
    return number, number * number

@dataclass(frozen=True)
class Case:
    name: str
    numbers: tuple
    folder: Path

def table(case, rows):
    noted(case.folder / "done.txt", rows.start)
    part = case.numbers[0] * np.arange(5.0)[rows]
    return {"part": part, "good": part > 2.0}

def refuse(number):
    raise RetorqueError(f"no {number} today; take another")

def vanish(number):
    os._exit(9)
"""
"""Spawned processes must find the functions of jobs in a module that they can import."""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "job_functions.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    sys.modules.pop("job_functions", None)
    return importlib.import_module("job_functions")


def test_results_come_in_the_order_of_the_jobs(functions) -> None:
    jobs = [(number, 0.3 if number == 0 else 0.0) for number in range(6)]  # the first is done last
    squares = [number * number for number in range(6)]
    assert run_jobs(functions.slow_square, jobs, 6, "squares", 2) == squares
    if importlib.util.find_spec("ray") is not None:
        assert run_jobs(functions.slow_square, jobs, 6, "squares", 2, "local") == squares


def test_what_a_job_refuses_is_refused(functions) -> None:
    for jobs in ([(3,)], [(3,)] * 20):  # also while others wait
        with pytest.raises(RetorqueError, match="no 3 today"):
            run_jobs(functions.refuse, jobs, len(jobs), "refused", 2)
    if importlib.util.find_spec("ray") is not None:
        with pytest.raises(RetorqueError, match="no 3 today"):
            run_jobs(functions.refuse, [(3,)], 1, "refused", 1, "local")


def test_a_worker_that_vanishes_is_a_sentence(functions) -> None:
    with pytest.raises(RetorqueError, match="ended from outside"):
        run_jobs(functions.vanish, [(1,), (2,)], 2, "vanishing", 2)


def test_what_cannot_be_spread_is_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for workers in (-1, 10**20):
        with pytest.raises(RetorqueError, match="--workers must be between 0 and 4096"):
            JobSettings(workers=workers).check_jobs()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RetorqueError, match=r"retorque\[cluster\]"):
        JobSettings(cluster="auto").check_jobs()
    JobSettings().check_jobs()


def test_finished_jobs_are_kept_and_damaged_or_other_ones_done_again(functions, tmp_path: Path) -> None:
    folder, log = tmp_path / "kept", tmp_path / "done.txt"
    jobs = [(str(log), number) for number in range(3)]
    assert run_jobs(functions.noted, jobs[:2], 2, "first", 1, "", folder) == [[0, 0], [1, 1]]
    assert run_jobs(functions.noted, jobs, 3, "more", 1, "", folder) == [[0, 0], [1, 1], [2, 4]]
    assert log.read_text().split() == ["0", "1", "2"]  # each was done once
    files = sorted(folder.iterdir())
    files[0].write_text(files[0].read_text()[:-9])
    files[1].write_text(files[2].read_text())  # the result of another job under this one's name
    assert run_jobs(functions.noted, jobs, 3, "again", 1, "", folder) == [[0, 0], [1, 1], [2, 4]]
    assert len(log.read_text().split()) == 5


def test_jobs_of_data_classes_and_slices_with_arrays_for_results_are_kept(functions, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for part in (slice(0, 2), slice(2, 5)):
        jobs = [(functions.Case("a", (1.5,), tmp_path), part)]
        done, again = (run_jobs(functions.table, jobs, 1, "tables", 1, "", folder)[0] for _ in range(2))
        for found in (done, again):
            assert found["part"].dtype == float and found["good"].dtype == bool
            np.testing.assert_array_equal(found["part"], 1.5 * np.arange(5.0)[part])
            np.testing.assert_array_equal(found["good"], found["part"] > 2.0)
    assert len(list(folder.iterdir())) == 2 and len((tmp_path / "done.txt").read_text().split()) == 2
