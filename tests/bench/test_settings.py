"""Every bench refuses nonsense in one sentence before its work begins, and keeps the settings that it ran with."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from retorque.bench.report import UNRECORDED, recorded
from retorque.cli.bench import BENCHES
from retorque.cli.main import COMMANDS
from retorque.cli.verb import Verb
from retorque.work.checks import check_names
from retorque.work.errors import RetorqueError
from retorque.work.jobs import _plain

VERBS: dict[str, Verb] = {name: verb for name, verb in BENCHES.commands.items()}
VERBS |= {
    f"retorque {word}": verb for word, verb in COMMANDS.items() if word in ("demo", "mpc") and isinstance(verb, Verb)
}

MEANS_SOMETHING = {
    ("tracking", "weights", ()),
    ("tracking", "adapter_settings", ()),
    *((name, field, ()) for name in ("source-to-osc", "worlds") for field in ("weights", "adapter_settings")),
    *((task, field, ()) for task in ("push", "flip", "ball") for field in ("weights", "adapter_settings")),
    ("damaged-logs", "robots", ()),  # stand-ins only
    ("damaged-logs", "stand_in_robots", ()),  # recordings only
    ("damaged-logs", "stand_ins", 0),
    ("damaged-logs", "damaged_stand_ins", 0),
    ("speed", "adapters", ()),  # all of them
    ("rotate", "whats", ()),
    *((task, "trials", 0) for task in ("push", "flip", "ball")),  # as many as the task's own
    ("retorque mpc", "kills", 0),
    *((name, field, 0) for name in VERBS for field in ("seed", "workers")),
}
"""What looks like nonsense and is none."""

FIRST_WORK = ("run_jobs", "progress", "compile_with_progress", "Context", "demo_arms")
"""What a bench calls first once it has believed its settings."""


class WorkBegan(Exception):
    """Settings were believed."""


def nonsense(kind: object) -> tuple[object, ...]:
    """Values of a type that no bench can run with."""
    inside = typing.get_args(kind)
    if kind is int:
        return (-1, 0, 10**20)
    if kind is float:
        return (float("nan"), float("inf"), -1.0)
    if kind is str:
        return ("nonsense:0",)
    if typing.get_origin(kind) is tuple and inside[0] is str:
        return ((), ("nonsense:0",))
    if typing.get_origin(kind) is tuple and inside[0] in (int, float):
        return ((), (float("nan"),), (-1,))
    return ()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], None]:
    """Let a bench's work end before it begins."""

    def stop(*_: object, **__: object) -> None:
        raise WorkBegan

    def guard(module: ModuleType) -> None:
        for name in FIRST_WORK:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, stop)
        monkeypatch.setattr("os.getloadavg", stop)  # the benches of speed look at the machine first

    return guard


@pytest.mark.parametrize("name", VERBS)
def test_nonsense_is_refused_in_a_sentence_before_the_work(name: str, begun, monkeypatch, tmp_path: Path) -> None:
    verb = VERBS[name]
    module = import_module(f"retorque.{verb.module}")
    settings, run = getattr(module, verb.settings), getattr(module, verb.function)
    begun(module)
    monkeypatch.chdir(tmp_path)
    believed = []
    for field, kind in typing.get_type_hints(settings).items():
        for value in nonsense(kind):
            if (name, field, value) in MEANS_SOMETHING:
                continue
            try:
                run(settings(**{field: value}))
            except RetorqueError as error:
                assert "\n" not in str(error) and len(str(error)) > 10
                continue
            except WorkBegan:
                pass
            believed.append((field, value))
    assert not believed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", BENCHES.commands)
def test_a_result_keeps_every_setting_that_it_depends_on(name: str) -> None:
    verb = VERBS[name]
    settings = getattr(import_module(f"retorque.{verb.module}"), verb.settings)()
    fields = {field.name for field in dataclasses.fields(settings)}
    assert set(recorded(settings)) == fields - set(UNRECORDED)
    assert {"json", "workers", "cluster"} <= fields
    assert "seed" in fields or name in ("real-logs", "comply-speed")  # nothing in them is random


def test_what_a_kept_part_is_asked_for_does_not_say_who_does_it(monkeypatch, tmp_path: Path) -> None:
    asked: dict[str, list[str]] = {}

    def noted(function: Callable, jobs: list[tuple], *_: object) -> None:
        asked[name].append(json.dumps(jobs, default=_plain))
        raise WorkBegan

    for name, verb in BENCHES.commands.items():
        module = import_module(f"retorque.{verb.module}")
        settings, run = getattr(module, verb.settings), getattr(module, verb.function)
        if "keep" not in {field.name for field in dataclasses.fields(settings)}:
            continue
        for before, does in (("compile_with_progress", lambda: None), ("fitted", lambda *_: ((0.0, 0.0), 0))):
            if hasattr(module, before):
                monkeypatch.setattr(module, before, does)
        monkeypatch.setattr(module, "run_jobs", noted)
        asked[name] = []
        for who in ({"workers": 1}, {"workers": 2, "keep": tmp_path, "json": tmp_path / "a.json"}):
            with pytest.raises(WorkBegan):
                run(settings(**who))
        assert asked[name][0] == asked[name][1], name
    assert {"tracking", "source-to-osc", "worlds", "mpc", "mpc-exploration", "mpc-start-time"} <= set(asked)


def test_what_names_nothing_or_something_unknown_is_refused() -> None:
    check_names("robot", "--robots", ("panda",))
    check_names("robot", "--robots", ("panda",), {"panda": 1, "z1": 2})
    with pytest.raises(RetorqueError, match="name at least one robot after --robots"):
        check_names("robot", "--robots", ())
    with pytest.raises(RetorqueError, match="unknown robot 'pandda'; did you mean 'panda'"):
        check_names("robot", "--robots", ("z1", "pandda"), ("panda", "z1"))
