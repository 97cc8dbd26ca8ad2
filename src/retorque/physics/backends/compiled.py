"""Compiled code: made once for a machine, kept on disk, and found again by what it was made of."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from retorque.work.errors import RetorqueError

MODULES = ("kernel", "tree_kernels", "tree_solver", "loss_kernels", "trajectory_kernels")
"""Everything that is compiled here, in this folder."""
ENTRY = "retorque.physics.backends.trajectory_kernels"


def folder() -> Path:
    """Where the compiled code of exactly these sources is kept."""
    import numba

    text = numba.__version__.encode()
    for name in MODULES:
        text += (Path(__file__).parent / f"{name}.py").read_bytes()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "retorque" / "kernels" / hashlib.sha256(text).hexdigest()[:16]


@cache
def load_kernels(entry: str = ENTRY) -> ModuleType:
    """The compiled module; the first time on a machine it takes half a minute to make."""
    try:
        import numba
    except ModuleNotFoundError:
        raise RetorqueError("the compiled dynamics need numba; pip install 'retorque[plan]'") from None
    config = vars(numba.config)
    before = config["CACHE_DIR"]
    config["CACHE_DIR"] = str(folder())
    try:
        module = import_module(entry)
        (folder() / f"{entry}.done").touch()
        return module
    finally:
        config["CACHE_DIR"] = before


def ready(entry: str = ENTRY) -> bool:
    """Whether loading takes a moment, not half a minute."""
    return (folder() / f"{entry}.done").exists()


def compile_beside(entry: str = ENTRY) -> subprocess.Popen[bytes]:
    """Compile in another process, so that this one goes on by another backend meanwhile; `ready` says when."""
    order = f"from retorque.physics.backends.compiled import load_kernels; load_kernels({entry!r})"
    return subprocess.Popen([sys.executable, "-c", order], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
