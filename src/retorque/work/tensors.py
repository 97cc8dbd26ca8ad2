"""The one file format for arrays: safetensors with a JSON header that says what they are and whether they are whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import versions, write_whole

KEY = "retorque"
"""Where the header lies in the file's metadata."""


def save_tensors(path: str | Path, arrays: Mapping[str, Array], kind: str, format: int, header: dict[str, Any]) -> Path:
    """Write arrays whole or not at all.

    Args:
        path: the file.
        arrays: by name.
        kind: what they are, in words that a message can use: "TAM weights".
        format: the version of this kind's layout.
        header: what else a reader must know; anything that JSON holds.
    """
    return write_whole(path, tensor_bytes(arrays, kind, format, header))


def tensor_bytes(arrays: Mapping[str, Array], kind: str, format: int, header: dict[str, Any]) -> bytes:
    """What `save_tensors` writes."""
    # The library writes memory as it lies, so rows must lie in order: a transposed view would come back scrambled.
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    about = {
        "kind": kind,
        "format": format,
        "checksum": checksum(plain),
        "versions": versions(),
        "header": header,
    }
    return save(plain, metadata={KEY: json.dumps(about)})


def load_tensors(
    path: str | Path, kind: str, format: int, *, finite: bool = False
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and header of a file; a missing, truncated, altered or foreign one is refused.

    Args:
        path: the file.
        kind: what it must hold.
        format: the version that it must have.
        finite: also refuse numbers that are not finite.
    """
    arrays, about = _read(path)
    found = about["kind"]
    if found != kind:
        raise RetorqueError(f"'{path}' holds {found}, not {kind}; name another file")
    if about["format"] != format:
        raise RetorqueError(f"'{path}' has format {about['format']}, this version reads {format}; make it again")
    if checksum(arrays) != about["checksum"]:
        raise RetorqueError(f"'{path}' was altered: its numbers do not match its checksum; copy or make it again")
    if finite:
        bad = [name for name, array in arrays.items() if not np.all(np.isfinite(array))]
        if bad:
            raise RetorqueError(f"'{path}' holds numbers that are not finite ({bad[0]}); make it again")
    return arrays, about["header"]


def checksum(arrays: Mapping[str, Array]) -> str:
    """SHA-256 over names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read(path: str | Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays of a file, and what it says about itself, each part of the right type."""
    if not os.path.isfile(path):  # also when the name is too long, or is a pipe's
        raise RetorqueError(f"there is no file '{path}'; check the name")
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise RetorqueError(f"'{path}' is not an intact safetensors file ({error}); copy or make it again") from error
    if text is None:
        raise RetorqueError(f"'{path}' was not written by Retorque: it has no header; name another file")
    try:
        about = json.loads(text)
        types = {"kind": str, "format": int, "checksum": str, "header": dict}
        wrong = [name for name, kind in types.items() if not isinstance(about[name], kind)]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RetorqueError(f"the header of '{path}' cannot be read ({error!r}); copy or make it again") from error
    if wrong:
        raise RetorqueError(f"the header of '{path}' has a '{wrong[0]}' of the wrong type; copy or make it again")
    return arrays, about
