"""Compiled code: made once for a machine, kept on disk, and found again by what it was made of."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from retorque.work.errors import RetorqueError
from retorque.work.jobs import progress

MODULES = (
    "kernel",
    "lanes",
    "tree_kernels",
    "tree_solver",
    "loss_kernels",
    "trajectory_kernels",
    "rollout_kernels",
    "backward_kernels",
    "ilqr_kernels",
    "window_kernels",
)
"""Everything that is compiled, in the folder `tree`."""
DONE = "all.done"
"""The file that says that everything has been compiled."""
PACKAGE = "retorque.physics.backends.tree"


def folder() -> Path:
    """Where the compiled code of exactly these sources is kept."""
    import numba

    text = numba.__version__.encode()
    for name in MODULES:
        text += (Path(__file__).parent / "tree" / f"{name}.py").read_bytes()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "retorque" / "kernels" / hashlib.sha256(text).hexdigest()[:16]


@cache
def load_kernels(name: str) -> ModuleType:
    """A compiled module; the first time on a machine it takes half a minute to make them all."""
    try:
        import numba
    except ModuleNotFoundError:
        raise RetorqueError("the compiled dynamics need numba; pip install 'retorque[compile]'") from None
    config = vars(numba.config)
    before = config["CACHE_DIR"]
    config["CACHE_DIR"] = str(folder())
    try:
        import_module(f"{PACKAGE}.{MODULES[-1]}")  # it needs all the others
        (folder() / DONE).touch()
        return import_module(f"{PACKAGE}.{name}")
    finally:
        config["CACHE_DIR"] = before


def load_all() -> None:
    """All of it."""
    load_kernels(MODULES[-1])


def ready() -> bool:
    """Whether loading takes a moment, not half a minute."""
    return find_spec("numba") is not None and (folder() / DONE).exists()


@cache
def compile_beside() -> subprocess.Popen[bytes]:
    """Compile in another process, once, so that this one goes on by another backend meanwhile; `ready` says when."""
    order = f"from {__name__} import load_all; load_all()"
    return subprocess.Popen([sys.executable, "-c", order], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compile_with_progress() -> None:
    """Compile now, with a line that says so where it takes long."""
    if ready():
        load_all()
        return
    with progress() as bar:
        bar.add_task("compiling the dynamics, once for this machine", total=None)
        load_all()
