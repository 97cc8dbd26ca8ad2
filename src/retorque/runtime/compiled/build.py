"""The C core, compiled on this machine the first time it is needed, and kept in a cache."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from retorque.work.errors import RetorqueError

SOURCES = Path(__file__).parents[1] / "core"
"""Where the C files lie."""
FLAGS = ("-std=c99", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-shared")
"""Every rule for numbers that are not finite holds; products and sums may be fused."""
LONGEST = 300.0
"""Time that the compiler is given [s]."""


def sources() -> tuple[Path, ...]:
    """The C files, sorted."""
    return tuple(sorted(SOURCES.rglob("*.c")))


def headers() -> tuple[Path, ...]:
    """The headers, sorted."""
    return tuple(sorted(SOURCES.rglob("*.h")))


def cache_folder() -> Path:
    """Where compiled cores are kept: `RETORQUE_CACHE`, or the user's cache."""
    named = os.environ.get("RETORQUE_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retorque"


def compiler() -> str:
    """The path of the C compiler: `CC`, or `cc`."""
    named = os.environ.get("CC") or "cc"
    found = shutil.which(named)
    if found is None:
        raise RetorqueError(f"there is no C compiler '{named}'; install one (gcc or clang), or name it in CC")
    return found


def build(extra: tuple[str, ...] = ()) -> Path:
    """The shared library of these sources and this compiler, compiled where the cache has none.

    Args:
        extra: further options of the compiler, such as sanitizers.
    """
    cc = compiler()
    folder = cache_folder()
    library = folder / f"core-{_fingerprint(cc, extra)}.so"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        if not library.exists():
            _compile(cc, extra, library)
    except OSError as error:
        raise RetorqueError(
            f"cannot use the cache '{folder}' ({error.strerror or error}); name one to write to in RETORQUE_CACHE"
        ) from None
    return library


@cache
def load(path: Path) -> ctypes.CDLL:
    """A compiled core, loaded once a process; calls let go of the interpreter's lock."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise RetorqueError(f"the compiled core '{path}' cannot be loaded ({error}); delete it") from None


def _fingerprint(cc: str, extra: tuple[str, ...]) -> str:
    """Of everything that the library depends on."""
    digest = hashlib.sha256()
    for path in (*sources(), *headers()):
        digest.update(path.name.encode() + path.read_bytes())
    stamp = Path(cc).resolve().stat()
    about = (cc, stamp.st_size, stamp.st_mtime_ns, platform.machine(), *FLAGS, *extra)
    digest.update(repr(about).encode())
    return digest.hexdigest()[:16]


def _compile(cc: str, extra: tuple[str, ...], library: Path) -> None:
    """Compile under a temporary name, then take the name: nobody ever loads half a library."""
    handle, name = tempfile.mkstemp(dir=library.parent, prefix=".core-", suffix=".so")
    os.close(handle)
    try:
        command = [cc, *FLAGS, *extra, f"-I{SOURCES}", "-o", name, *map(str, sources()), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise RetorqueError(f"'{cc}' took more than {LONGEST:.0f} s for the core; name another one in CC") from None
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            raise RetorqueError(f"'{cc}' cannot compile the core ({first}); name another one in CC")
        os.replace(name, library)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
