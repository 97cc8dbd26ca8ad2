"""Result files: written whole or not at all, and the versions that made them."""

from __future__ import annotations

import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from retorque.work.errors import RetorqueError


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write `content` under a temporary name beside `path`, then rename, so that no reader ever sees half a file."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target


def check_folder(folder: Path) -> None:
    """Refuse, before the long work, a folder that could not be written after it; nothing is left behind."""
    if folder.exists() and not folder.is_dir():
        raise RetorqueError(f"'{folder}' is a file; name a folder")
    nearest = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=nearest):
            pass
    except OSError as error:
        raise RetorqueError(f"cannot write into '{folder}' ({error.strerror}); name a folder you can write") from None


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("retorque", "numpy", "mujoco", "pin"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
