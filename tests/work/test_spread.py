"""Work in parts: the same results with any number of processes, and files that several writers share."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.files import is_file, versions, write_whole
from retorque.work.jobs import run_jobs

MODULE = """
import numpy as np
from retorque.work.jobs import report

def drawn(seed, count):
    report(count)
    return np.random.default_rng(seed).standard_normal(count).tobytes()

def broken(number):
    if number == 2:
        raise ValueError("a mistake of ours")
    return number
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "spread_functions.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    sys.modules.pop("spread_functions", None)
    return importlib.import_module("spread_functions")


def test_how_many_processes_there_are_changes_no_number(functions) -> None:
    jobs = [(seed, 4 + seed) for seed in range(5)]
    alone = [functions.drawn(*job) for job in jobs]
    assert [run_jobs(functions.drawn, jobs, 30, "drawing", workers) for workers in (1, 2)] == [alone, alone]
    assert run_jobs(functions.drawn, jobs[:1], 4, "one", 9) == alone[:1]  # never more processes than jobs


def test_a_mistake_of_ours_stays_one(functions) -> None:
    with pytest.raises(ValueError, match="a mistake of ours"):
        run_jobs(functions.broken, [(1,), (2,)], 2, "broken", 1)


WRITER = """
import json, sys
from retorque.work.files import write_whole
for k in range(60):
    write_whole(sys.argv[1], json.dumps([sys.argv[2]] * 3000))
"""


def test_a_reader_sees_one_writers_file_or_the_others_and_never_a_mixture(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    write_whole(path, json.dumps(["begin"]))
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        content = json.loads(path.read_text())
        assert len(set(content)) == 1 and len(content) in (1, 3000)
        seen.add(content[0])
    assert [writer.returncode for writer in writers] == [0, 0] and seen >= {"a", "b"}
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]


def test_permissions_of_a_new_file_are_the_users(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert write_whole(tmp_path / "a", "x").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ("a\0b", "a" * 5000, ""))
def test_a_name_that_no_file_can_have_is_no_file(name: str) -> None:
    assert not is_file(Path(name))


def test_a_result_names_what_it_depends_on() -> None:
    found = versions()
    assert found["python"].split(".")[:2] == [str(part) for part in sys.version_info[:2]]
    assert {"retorque", "numpy", "mujoco", "pin"} < set(found) and "unknown" not in found.values()


def test_limits_belong_to_the_range_and_no_rounding_gets_past_them() -> None:
    check_between("--seed", MOST_SEED, 0, MOST_SEED)
    for value in (MOST_SEED + 1, -1, -1e-300):
        with pytest.raises(RetorqueError, match="--seed must be between 0 and"):
            check_between("--seed", value, 0, MOST_SEED)


@pytest.mark.parametrize("near", ("panda", "Panda", "pand", "apnda"))
def test_the_nearest_name_is_offered_and_the_list_is_sorted(near: str) -> None:
    said = str(unknown("robot", near + "x", ["z1", "panda", "iiwa14"]))
    assert "did you mean 'panda'?" in said and said.endswith("on board: iiwa14, panda, z1")
