"""Compiled code is kept on disk and found again by its sources."""

from __future__ import annotations

import sys

import pytest

from retorque.physics.backends import kernel_cache as compiled
from retorque.work.errors import RetorqueError


def test_the_folder_follows_the_sources(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = compiled.folder()
    assert first.is_relative_to(tmp_path) and first == compiled.folder()
    monkeypatch.setattr(compiled, "MODULES", compiled.MODULES[:1])
    assert compiled.folder() != first and not compiled.ready()


def test_loaded_code_is_ready_and_shared() -> None:
    assert compiled.load_kernels("tree_kernels") is compiled.load_kernels("tree_kernels")
    assert compiled.ready()


def test_without_numba_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(RetorqueError, match=r"retorque\[compile\]"):
        compiled.load_kernels.__wrapped__("tree_kernels")
