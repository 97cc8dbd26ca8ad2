"""Result files: written whole or not at all, and the versions that made them."""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from retorque.work.errors import RetorqueError


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file so that no reader ever sees half of it; what is no plain file is written into, never replaced.

    A plain file gets its content under a temporary name beside it, then the name. A link stays a link: the file that it
    points to is written. A device, a pipe, our own standard output and a file of several names are written into.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        own = _own_stream(target)
        if own is not None:
            own.flush()
            own.buffer.write(data)
            own.buffer.flush()
        elif _written_into(target):
            with open(target, "wb") as file:
                file.write(data)
        else:
            _replace(Path(os.path.realpath(target)), data)
    except OSError as error:
        raise RetorqueError(f"cannot write '{path}' ({error.strerror or error}); make room or name another file") from (
            error
        )
    return target


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or with a zero in it
        return False


def check_file(file: Path) -> None:
    """Refuse, before the long work, a file that could not be written after it; nothing is left behind."""
    missing = [folder for folder in file.parents if not os.path.exists(folder)]
    try:
        if _own_stream(file) is not None:
            return
        if _written_into(file):
            if not os.access(file, os.W_OK):
                raise PermissionError("it may not be written to")
            return
        real = Path(os.path.realpath(file))
        real.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=real.parent):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RetorqueError(f"cannot write '{file}' ({reason}); name a file in a folder you can write") from None
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()


def check_folder(folder: Path) -> None:
    """Refuse, before the long work, a folder that could not be written after it; nothing is left behind."""
    if os.path.exists(folder) and not folder.is_dir():
        raise RetorqueError(f"'{folder}' is a file; name a folder")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.stat(folder)  # its name may be too long, or lie below a file
        nearest = next(parent for parent in (folder, *folder.absolute().parents) if os.path.exists(parent))
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RetorqueError(f"cannot write into '{folder}' ({reason}); name a folder you can write") from None


def _own_stream(target: Path) -> TextIO | None:
    """Our standard output or error stream, where the path leads to it: a second opening would write over it."""
    try:
        there = os.stat(target)
    except (OSError, ValueError):
        return None
    for stream in (sys.stdout, sys.stderr):
        try:
            if os.path.samestat(there, os.fstat(stream.fileno())):
                return stream
        except (OSError, ValueError, AttributeError):  # closed, or replaced by something in memory
            continue
    return None


def _written_into(target: Path) -> bool:
    """Whether a path leads to something that must not be replaced; what must not be written at all is refused."""
    try:
        there = os.stat(target)
    except FileNotFoundError:
        return False
    kind = there.st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError("it is a folder")
    if stat.S_ISBLK(kind) or stat.S_ISSOCK(kind):
        raise OSError("it is a disk or a socket")
    return not stat.S_ISREG(kind) or there.st_nlink > 1


def _replace(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".retorque-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(target: Path) -> int:
    """The permissions that the file has, or that a new one gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    from importlib.metadata import PackageNotFoundError, version  # here: it is slow to load, and seldom needed

    found = {"python": platform.python_version()}
    for name in ("retorque", "numpy", "mujoco", "pin"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
