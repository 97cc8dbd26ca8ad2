"""Wiring files: what is not there keeps its default, what cannot be is one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from retorque.runtime.drivers.wiring import numbers, read_wiring
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class Bus:
    ids: tuple[int, ...] = ()
    rate: float = 200.0


def test_files_are_read_with_defaults(tmp_path: Path) -> None:
    assert read_wiring(None, Bus) == Bus()
    path = tmp_path / "wiring.toml"
    path.write_text("ids = [3, 1, 2]\n")
    assert read_wiring(path, Bus) == Bus(ids=(3, 1, 2))


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"idz = [1]\n", "did you mean 'ids'"), (b"ids = [1\n", "cannot be read"), (b"\xff\xfe", "cannot be read")],
    ids=str,
)
def test_what_cannot_be_read_is_said(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "wiring.toml"
    path.write_bytes(content)
    with pytest.raises(RetorqueError, match=says):
        read_wiring(path, Bus)
    with pytest.raises(RetorqueError, match="cannot be read"):
        read_wiring(tmp_path / "nothing.toml", Bus)


def test_one_finite_number_a_joint() -> None:
    assert numbers("signs", (), 3, 1.0) == [1.0, 1.0, 1.0]
    assert numbers("signs", (1, -1.0), 2, 1.0) == [1.0, -1.0]
    for wrong in ((1.0,), (1.0, "x"), (float("nan"), 1.0), (float("inf"), 1.0), (1e13, 0.0)):
        with pytest.raises(RetorqueError, match="'signs' in the wiring must be 2 finite numbers"):
            numbers("signs", wrong, 2, 1.0)
