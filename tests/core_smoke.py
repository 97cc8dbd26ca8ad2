"""What must work with the core alone, without any extra: `make core-test` runs this in an environment of its own.

No test framework is needed, as there is none there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXTRA_MODULES = ("torch", "pyarrow", "ray", "mujoco_menagerie", "pytest")
"""What must not be here, or else this proves nothing."""


def retorque(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """A command's exit code, output and complaints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "retorque", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=170, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def check_imports(folder: Path) -> None:
    """Every public name resolves, and nothing of an extra came in."""
    there = [name for name in EXTRA_MODULES if importlib.util.find_spec(name)]
    assert not there, f"this environment has {', '.join(there)}: it is not the core alone"
    import retorque as library

    for name in library.__all__:
        getattr(library, name)


def check_robots(folder: Path) -> None:
    code, out, _ = retorque(folder, "robots")
    assert code == 0 and "panda" in out


def check_bench(folder: Path) -> None:
    options = ["--trials", "2", "--duration", "2", "--adapters", "direct", "tam", "--json", "rows.json"]
    code, _, error = retorque(folder, "bench", "tracking", *options)
    assert code == 0, error
    means = {row["method"]: row["mean"] for row in json.loads((folder / "rows.json").read_text())["rows"]}
    assert means["tam"] < 0.5 * means["direct"], means


def check_identify(folder: Path) -> None:
    """The physically consistent estimate and a payload need no extra; what does names it."""
    write_log(folder / "log.npz")
    for method in ("wls", "sdp"):
        options = ["--robot", "z1", "--method", method, "--json", "model.json"]
        code, _, error = retorque(folder, "identify", "log.npz", *options)
        model = json.loads((folder / "model.json").read_text())
        assert code == {"trust": 0, "doubt": 3}[model["verdict"]], error  # noise in the wrist is no reason to refuse
        relative = model["train"]["relative_error"]
        assert max(relative[:4]) < 0.05, relative  # the wrist's torques are hardly above the noise
    code, _, error = retorque(folder, "payload", "log.npz", "log.npz", "--robot", "z1", "--json", "payload.json")
    assert code in (0, 3), error  # the same log twice: there is no payload to be sure of
    assert abs(json.loads((folder / "payload.json").read_text())["mass_kg"]) < 0.1
    code, _, error = retorque(folder, "identify", "log.npz", "--robot", "z1", "--method", "diffbary")
    assert code == 2 and "retorque[train]" in error, error


def check_what_needs_an_extra(folder: Path) -> None:
    for arguments, extra in (
        (("train", "tam"), "train"),
        (("bench", "inverse-dynamics"), "train"),
        (("bench", "tracking", "--cluster", "local"), "cluster"),
    ):
        code, _, error = retorque(folder, *arguments)
        assert code == 2 and f"retorque[{extra}" in error and error.count("\n") == 1, (arguments, error)


def write_log(path: Path) -> None:
    """A motion of sines, and the torques that the card's rigid body needs for it, with some noise."""
    import numpy as np

    from retorque import RigidBody, Robot

    robot = Robot.load("z1")
    clock = np.arange(0.0, 8.0, 0.005)
    rng = np.random.default_rng(0)
    q, qd, qdd = (np.zeros((len(clock), robot.n)) for _ in range(3))
    for rate in 2.0 * np.pi * np.array([0.3, 0.7, 1.1]):
        size, phase = rng.uniform(0.1, 0.25, robot.n), rng.uniform(-np.pi, np.pi, robot.n)
        angle = rate * clock[:, None] + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    q += robot.home
    torque = RigidBody(robot).inverse_dynamics(q, qd, qdd) + 0.05 * rng.standard_normal(q.shape)
    np.savez(path, time=clock, q=q, qd=qd, torque=torque)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_imports, check_robots, check_bench, check_identify, check_what_needs_an_extra):
            began = time.perf_counter()
            check(Path(folder))
            print(f"{check.__name__}: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
