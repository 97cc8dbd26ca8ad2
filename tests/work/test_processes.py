"""A parent that is killed leaves no process behind, and the module can be run as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from waiting import within

SCRIPT = """
import os, sys, time
from pathlib import Path
from retorque.work.jobs import run_jobs

def job(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(120.0)

if __name__ == "__main__":
    run_jobs(job, [(sys.argv[1],)] * 2, 1, "asleep", workers=2)
"""


def running(number: str) -> bool:
    """Whether a process is there and not merely unburied."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_bench_leaves_no_worker_behind(tmp_path: Path) -> None:
    (tmp_path / "numbers").mkdir()
    (tmp_path / "bench.py").write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, tmp_path / "bench.py", tmp_path / "numbers"])
    try:
        assert within(60.0, lambda: len(list((tmp_path / "numbers").iterdir())) == 2)
        workers = [path.name for path in (tmp_path / "numbers").iterdir()]
        assert all(running(number) for number in workers)
    finally:
        parent.kill()
        parent.wait()
    assert within(30.0, lambda: not any(running(number) for number in workers))


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "retorque", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("retorque ")
