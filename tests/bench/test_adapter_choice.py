"""The user's doors on the command line: an own class, own weights, settings of adapters."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.tam.tam_weights import find
from retorque.bench.adapters import AdapterChoice, AdapterSettings, halves, supervised
from retorque.bench.tracking import Settings, errors_of_part, run
from retorque.loop.supervisor import Supervisor
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings
from retorque.work.errors import RetorqueError

OWN = '''"""An adapter of a user's."""
from dataclasses import dataclass
from retorque import Adapter

@dataclass(frozen=True, kw_only=True)
class PushSettings:
    torque: float = 0.0

class Push(Adapter):
    settings_type = PushSettings

    def __init__(self, robot, trials, timestep=1e-3, seed=0, *, settings=None):
        super().__init__(robot, trials, timestep, seed)
        self.settings = settings or PushSettings()

    def correct(self, state, nominal_torque):
        return nominal_torque + self.settings.torque

class NotOne:
    pass
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's."""
    (tmp_path / "pushing.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    world = ("--robots", "z1", "--trials", "2", "--duration", "1", "--workers", "1", "--json", "out.json")
    return subprocess.run(
        [sys.executable, "-m", "retorque", "bench", "tracking", *world, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONSAFEPATH": "1"},  # as the installed script: the folder is not on the path by itself
    )


def test_a_class_of_ones_own_with_settings_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "pushing.py").write_text(OWN)
    done = bench(tmp_path, "--adapters", "direct", "pushing:Push", "--adapter-settings", "pushing:Push.torque=0.5")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    rows = {row["method"]: row for row in result["rows"]}
    assert set(rows) == {"direct", "pushing:Push"}
    assert rows["direct"]["trial_values"] != rows["pushing:Push"]["trial_values"]  # the setting has arrived
    assert result["settings"]["adapter_settings"] == ["pushing:Push.torque=0.5"]


def test_without_its_setting_the_class_does_nothing(own: Path) -> None:
    report = run(Settings(robots=("z1",), adapters=("direct", "pushing:Push"), trials=2, duration=1.0, workers=1))
    direct, push = report.rows
    assert direct.extra["trial_values"] == pytest.approx(push.extra["trial_values"], rel=1e-9)


def test_weights_of_ones_own_are_the_ones_that_run(tmp_path: Path) -> None:
    """The file on board under another name gives the same bits; other weights give other numbers."""
    board = tmp_path / "mine=1.safetensors"  # an odd name, but a name
    shutil.copy(find("tam", ""), board)
    tuned = find("tam", "z1")
    world, rows = TrackingSettings(trials=2, duration=1.0), slice(0, 2)

    def errors(weights: Path | None) -> np.ndarray:
        given = AdapterSettings(adapters=("tam",), weights=() if weights is None else (str(weights),))
        return errors_of_part("z1", world, given.choices(), rows)["tam"]

    np.testing.assert_array_equal(errors(board), errors(None))
    assert np.abs(errors(tuned) - errors(None)).max() > 1e-6


def test_whose_weights_a_file_is() -> None:
    path = str(find("tam", ""))
    one = AdapterSettings(adapters=("direct", "tam"), weights=(path,)).choices()
    assert one == (AdapterChoice("direct"), AdapterChoice("tam", path))
    two = AdapterSettings(adapters=("tam", "tam-recursive"), weights=(f"tam={path}",)).choices()
    assert [choice.weights for choice in two] == [path, ""]


@pytest.mark.parametrize(
    ("given", "said"),
    (
        ({"adapters": ("recursiv",)}, "did you mean 'recursive'"),
        ({"adapters": ()}, "at least one adapter"),
        ({"adapters": ("direct", "direct")}, "twice"),
        ({"adapters": ("nowhere_at_all:Thing",)}, "module:Class"),
        ({"adapters": ("pushing:Missing",)}, "module:Class"),
        ({"adapters": ("pushing:NotOne",)}, "derive its class from retorque.Adapter"),
        ({"adapters": ("direct",), "weights": ("x.safetensors",)}, "no adapter of --adapters has weights"),
        ({"adapters": ("tam", "tam-ft"), "weights": ("x",)}, "say whose they are"),
        ({"adapters": ("tam",), "weights": ("nowhere.safetensors",)}, "there is no file"),
        ({"adapters": ("recursive",), "weights": ("recursive=x",)}, "has no weights"),
        ({"adapter_settings": ("recursive.window",)}, "ADAPTER.NAME=VALUE"),
        ({"adapter_settings": ("window=0.1",)}, "ADAPTER.NAME=VALUE"),
        ({"adapter_settings": ("recursve.window=0.1",)}, "did you mean 'recursive'"),
        ({"adapter_settings": ("recursive.windw=0.1",)}, "did you mean 'window'"),
        ({"adapter_settings": ("recursive.window=wide",)}, "is a float, not 'wide'"),
        ({"adapter_settings": ("direct.speed=1",)}, "no settings"),
    ),
    ids=str,
)
def test_what_does_not_fit_is_refused_with_one_sentence(own: Path, given: dict, said: str) -> None:
    with pytest.raises(RetorqueError, match=said):
        AdapterSettings(**given).choices()


def test_a_setting_changes_the_adapter_that_a_bench_runs() -> None:
    choice = AdapterSettings(adapters=("recursive",), adapter_settings=("recursive.stride=0.02",)).choices()[0]
    robot = Robot.load("z1")
    ideal = Parameters.ideal(robot, 1)
    module = supervised(choice, robot, 1, 0, lambda: ideal)
    assert isinstance(module, Supervisor) and module.learn_every == 20
    assert supervised("recursive", robot, 1, 0, lambda: ideal).learn_every == 10
    assert not isinstance(supervised("direct", robot, 1, 0, lambda: ideal), Supervisor)


def test_halves_do_not_depend_on_the_workers() -> None:
    assert halves(7) == [slice(0, 7)]
    assert halves(9) == [slice(0, 4), slice(4, 9)]


def test_settings_may_also_be_the_dataclass_itself() -> None:
    robot = Robot.load("z1")
    by_name = make("recursive", robot, settings={"stride": 0.02})
    by_class = make("recursive", robot, settings=type(by_name.settings)(stride=0.02))
    assert by_name.settings == by_class.settings
