"""Which engine runs, and why: no compiler, no cache, no port, altered weights."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque import Health, Robot, Supervisor, compiled, make_adapter
from retorque.bench import tracking
from retorque.robots.robot import Frame, Joint, Link
from retorque.runtime.compiled import build as building
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.work.errors import RetorqueError


def guarded(adapter: str = "recursive") -> Supervisor:
    return Supervisor(make_adapter(adapter, Robot.load("z1"), 1))


def test_the_codes_of_the_header_are_healths() -> None:
    text = (building.SOURCES / "retorque.h").read_text()
    codes = dict(re.findall(r"  RT_(\w+) = (\d+)", text))
    assert codes == {flag.name: str(int(flag)) for flag in Health if flag}
    assert f"#define RT_CODES {len(codes)}" in text


def test_it_says_that_it_is_compiled(core: Path, monkeypatch) -> None:
    monkeypatch.setenv("RETORQUE_CACHE", str(core.parent))
    found = compiled(guarded())
    assert isinstance(found, CompiledSupervisor) and found.engine == f"C ({core.name})"


def test_without_a_compiler_numpy_runs_and_says_so(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path))
    supervisor = guarded()
    assert compiled(supervisor) is supervisor
    assert supervisor.engine.startswith("NumPy: there is no C compiler 'no-such-compiler'")
    assert make_adapter("direct", Robot.load("z1")).engine == "NumPy"


def test_a_compiler_that_fails(monkeypatch, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'error: no' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path / "cache"))
    assert "cannot compile the core (error: no)" in compiled(guarded()).engine
    assert list((tmp_path / "cache").iterdir()) == []  # nothing half-made is left


def test_a_cache_that_cannot_be_written(core: Path, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path / "file" / "cache"))
    found = compiled(guarded())
    assert isinstance(found, Supervisor)
    assert "cannot use the cache" in found.engine and "RETORQUE_CACHE" in found.engine


def test_a_library_that_is_none(core: Path, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path))
    (tmp_path / core.name).write_bytes(b"not a library")
    assert "cannot be loaded" in compiled(guarded()).engine


def test_an_adapter_without_a_port_stays(core: Path) -> None:
    supervisor = guarded("particle")
    assert compiled(supervisor) is supervisor
    assert supervisor.engine == "NumPy: Particle has no compiled core"


def test_altered_weights_are_refused(tmp_path: Path) -> None:
    from retorque.adapt.tam.tam_weights import find

    content = bytearray(find("tam").read_bytes())
    content[-5] ^= 1
    (tmp_path / "altered.safetensors").write_bytes(content)
    with pytest.raises(RetorqueError, match="altered"):
        compiled(Supervisor(make_adapter("tam", Robot.load("z1"), 1, weights=tmp_path / "altered.safetensors")))


def test_another_rate_is_refused(core: Path) -> None:
    with pytest.raises(RetorqueError, match="Hz"):
        compiled(Supervisor(make_adapter("tam", Robot.load("z1"), 1, timestep=2e-3)))


def test_reports_of_another_shape_are_no_data(core: Path) -> None:
    from retorque.robots.state import State

    found = CompiledSupervisor(guarded(), core)
    state = State(0.0, np.zeros(3), np.zeros(3), np.zeros(3))
    found.observe(state)
    sent = found.correct(state, np.zeros(4))
    assert np.isfinite(sent).all() and sent.shape == (1, 6)
    assert found.health[0] & Health.BAD_STATE and found.health[0] & Health.BAD_NOMINAL


def test_a_bench_gives_the_same_figures(core: Path, monkeypatch) -> None:
    monkeypatch.setenv("RETORQUE_CACHE", str(core.parent))
    settings = tracking.Settings(robots=("z1",), adapters=("recursive",), trials=2, duration=1.0, workers=1)
    plain, fast = (tracking.run(replace(settings, compiled=choice)).rows[0] for choice in (False, True))
    # A closed loop with friction magnifies the last digit; batches of other sizes differ by as much.
    assert fast.extra["trial_values"] == pytest.approx(plain.extra["trial_values"], rel=1e-3)


def test_a_compiler_that_never_ends(monkeypatch, tmp_path: Path) -> None:
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "LONGEST", 0.2)
    assert "took more than 0 s for the core" in compiled(guarded("direct")).engine


def test_a_robot_of_more_joints_than_the_core_has_room_for(core: Path) -> None:
    links = [Link(name="base", parent="world", joint=None, mass=0.0)]
    for k in range(33):
        joint = Joint(name=f"j{k}", kind="revolute", axis=(0.0, 0.0, 1.0))
        links.append(
            Link(name=f"l{k}", parent=links[-1].name, joint=joint, mass=0.1, inertia=(1e-3, 1e-3, 1e-3, 0, 0, 0))
        )
    end = Frame(link="l32")
    long = Robot(name="long", links=tuple(links), home=np.zeros(33), end_effector=end, payload_mount=end)
    with pytest.raises(RetorqueError, match="too many joints for the compiled core"):
        CompiledAdapter(make_adapter("direct", long, 1), core)


def test_a_library_of_other_sources_is_refused(core: Path, monkeypatch) -> None:
    class Other:
        def __getattr__(self, name: str):
            return lambda *_: 1

    monkeypatch.setattr("retorque.runtime.compiled.adapter.load", lambda path: Other())
    with pytest.raises(RetorqueError, match="made of other sources"):
        CompiledAdapter(make_adapter("direct", Robot.load("z1"), 1), core)


def test_the_header_is_read_as_the_compiler_reads_it(core: Path) -> None:
    import ctypes

    from retorque.runtime.compiled.structures import layouts, structure

    calls = building.load(core)
    calls.rt_model_bytes.restype = ctypes.c_size_t
    assert calls.rt_model_bytes() == ctypes.sizeof(structure("rt_model"))
    fields = {field.name: field for field in layouts()["rt_default"]}
    assert fields["hand_place"].length == 3 and fields["counts"].pointer and fields["counts"].kind == "int"
    assert not fields["weight"].pointer and fields["joint_doubt"].pointer
