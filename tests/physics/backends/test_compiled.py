"""Compiled code is kept on disk and found again by its sources."""

from __future__ import annotations

import sys

import pytest

from retorque.physics import dynamics
from retorque.physics.backends import kernel_cache as compiled
from retorque.physics.dynamics import make_dynamics
from retorque.robots.robot import Robot
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


def test_dynamics_at_once_do_not_wait_for_a_compiler(monkeypatch) -> None:
    robot, asked = Robot.load("z1"), []
    monkeypatch.setattr(dynamics, "compile_beside", lambda: asked.append(1))
    assert isinstance(make_dynamics(robot, 0.01, backend="at-once"), type(make_dynamics(robot, 0.01, backend="tree")))
    monkeypatch.setattr(dynamics, "ready", lambda: False)
    now = make_dynamics(robot, 0.01, backend="at-once")
    assert isinstance(now, type(make_dynamics(robot, 0.01, backend="pinocchio"))) and asked == [1]


def test_another_process_compiles(monkeypatch) -> None:
    orders = []
    monkeypatch.setattr(compiled.subprocess, "Popen", lambda words, **_: orders.append(words))
    compiled.compile_beside.__wrapped__()
    (words,) = orders
    assert words[:2] == [sys.executable, "-c"]
    monkeypatch.setattr(compiled, "load_kernels", lambda name: orders.append(name))
    exec(words[2], {})  # what the other process would do
    assert orders[-1] == compiled.MODULES[-1]
