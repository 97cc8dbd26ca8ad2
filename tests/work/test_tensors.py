"""The file format of arrays: what comes back, and what is refused in one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from retorque.work.errors import RetorqueError
from retorque.work.tensors import KEY, load_tensors, save_tensors, tensor_bytes

ARRAYS = {
    "turned": np.arange(6.0).reshape(2, 3).T,  # rows do not lie in order
    "reversed": np.arange(5)[::-1],
    "thin": np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
    "number": np.array(2.5),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3)),
}


def test_what_is_written_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = save_tensors(tmp_path / "a", ARRAYS, "a test", 3, {"seed": 1, "names": ["ä", "b"]})
    found, header = load_tensors(path, "a test", 3, finite=True)
    assert header == {"seed": 1, "names": ["ä", "b"]} and found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_the_file_says_what_made_it(tmp_path: Path) -> None:
    content = tensor_bytes(ARRAYS, "a test", 3, {})
    about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"][KEY])
    assert about["kind"] == "a test" and about["format"] == 3 and len(about["checksum"]) == 64
    assert "numpy" in about["versions"]


def _header(change: dict | None = None, text: str = "") -> bytes:
    """A file whose header is another one."""
    about = {"kind": "a test", "format": 3, "checksum": "", "header": {}, **(change or {})}
    return save({"a": np.zeros(2)}, metadata={KEY: text or json.dumps(about)})


GOOD = tensor_bytes({"a": np.ones(9)}, "a test", 3, {})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an intact safetensors file"),
        (b"garbage" * 99, "not an intact safetensors file"),
        (GOOD[:-1], "not an intact safetensors file"),
        (GOOD[:-1] + b"\x01", "altered"),
        (save({"a": np.zeros(2)}), "no header"),
        (_header(text="{"), "cannot be read"),
        (_header(text="[]"), "cannot be read"),
        (_header(text="[" * 100_000), "cannot be read"),
        (_header({"header": [1]}), "'header' of the wrong type"),
        (_header({"format": "three"}), "'format' of the wrong type"),
        (_header({"kind": None}), "'kind' of the wrong type"),
        (_header(), "altered"),
        (tensor_bytes({}, "another", 3, {}), "holds another, not a test"),
        (tensor_bytes({}, "a test", 4, {}), "format 4, this version reads 3"),
        (tensor_bytes({"a": np.array([1.0, np.nan])}, "a test", 3, {}), r"not finite \(a\)"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(RetorqueError, match=says) as refused:
        load_tensors(path, "a test", 3, finite=True)
    assert "\n" not in str(refused.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", tmp_path / ("a" * 300)):
        with pytest.raises(RetorqueError, match="there is no file"):
            load_tensors(path, "a test", 3)
