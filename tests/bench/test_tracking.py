"""The tracking bench: rows, JSON, seeds, contact, and bad input through the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.bench import tracking
from retorque.bench.adapters import AdapterChoice
from retorque.bench.tracking import Settings, run
from retorque.cli.main import main
from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.errors import RetorqueError

TINY = Settings(robots=("panda", "z1"), adapters=("direct", "oracle"), trials=4, duration=2.0)
FIELDS = {"robot", "method", "metric", "unit", "mean", "std", "ci95", "trials", "paper"}


@pytest.fixture(scope="module")
def report():
    return run(TINY)


def test_rows_are_one_a_robot_and_adapter(report) -> None:
    assert [(row.robot, row.method) for row in report.rows] == [
        ("panda", "direct"),
        ("panda", "oracle"),
        ("z1", "direct"),
        ("z1", "oracle"),
    ]
    for row in report.rows:
        assert (row.metric, row.unit, row.trials) == ("joint RMSE", "deg", 4)
        assert row.ci95[0] <= row.mean <= row.ci95[1]
    assert report.rows[0].paper == 4.16
    assert report.rows[1].mean < report.rows[0].mean
    assert "zero by construction" in report.notes


def test_json_has_the_fields_that_every_bench_writes(report, tmp_path: Path) -> None:
    report.save(tmp_path / "deep" / "rows.json")
    content = json.loads((tmp_path / "deep" / "rows.json").read_text())
    assert content["bench"] == "tracking"
    assert content["settings"]["seed"] == 0 and content["settings"]["versions"]["mujoco"]
    assert len(content["rows"]) == 4
    for row in content["rows"]:
        assert set(row) >= FIELDS
        assert len(row["ci95"]) == 2 and len(row["trial_values"]) == 4
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["rows.json"]


def test_the_same_seed_gives_the_same_numbers_whatever_the_workers() -> None:
    settings = Settings(adapters=("direct",), trials=8, duration=1.0, noise=True, contact=True)
    one, two = (run(replace(settings, workers=workers)).rows[0].extra["trial_values"] for workers in (1, 2))
    other = run(replace(settings, seed=1)).rows[0].extra["trial_values"]
    assert one == two
    assert one != other


def test_nothing_hidden_means_no_error_and_contact_is_felt_by_the_ideal_robot_too() -> None:
    settings = Settings(adapters=("direct",), trials=2, duration=2.0, nothing_hidden=True)
    assert run(settings).rows[0].mean == 0.0
    assert run(replace(settings, contact=True)).rows[0].mean == 0.0
    assert run(replace(settings, payload_step=1.0)).rows[0].mean > 0.1


def test_adapters_that_are_not_told_have_no_ranges_from_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[Robot] = []
    made = tracking.supervised

    def noted(name: AdapterChoice, robot: Robot, *rest) -> Adapter:
        known.append(robot)
        return made(name, robot, *rest)

    monkeypatch.setattr(tracking, "supervised", noted)
    world, choice = TrackingSettings(trials=2, duration=1.0), AdapterChoice("direct")
    here, there = (
        tracking.errors_of_part("z1", world, (choice,), slice(0, 2), told=told)["direct"] for told in (True, False)
    )
    assert [robot.profile is not None for robot in known] == [True, False]
    np.testing.assert_array_equal(here, there)  # the robots themselves are the same


def test_any_robots_file_can_be_tracked(tmp_path: Path) -> None:
    path = tmp_path / "pendulum.xml"
    path.write_text(
        """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
        <inertial pos="0 0 -0.3" mass="1" diaginertia="0.03 0.03 0.001"/>
        <body name="tip" pos="0 0 -0.6"><joint name="elbow" axis="0 1 0"/>
        <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.001"/></body></body></worldbody></mujoco>"""
    )
    row = run(Settings(robots=(str(path),), adapters=("direct",), trials=2, duration=2.0)).rows[0]
    assert np.isfinite(row.mean) and row.mean > 0.0 and row.paper is None


def test_parts_of_a_task_are_the_same_trials() -> None:
    task = TrackingTask(Robot.load("panda"), TrackingSettings(trials=6, noise=True, contact=True))
    part = task.part(slice(2, 4))
    np.testing.assert_array_equal(part.parameters.armature, task.parameters.armature[2:4])
    np.testing.assert_array_equal(part.reference.at(3.0).position, task.reference.at(3.0).position[2:4])
    assert part.pulses is not None and task.pulses is not None
    np.testing.assert_array_equal(part.pulses.at(3.0), task.pulses.at(3.0)[2:4])


@pytest.mark.parametrize(
    "change",
    (
        {"trials": 0},
        {"seed": -1},
        {"duration": float("nan")},
        {"duration": 0.0},
        {"payload_step": -1.0},
        {"payload_step": float("inf")},
        {"adapters": ()},
        {"robots": ()},
        {"robots": ("pandda",)},
        {"robots": ("g1",)},
        {"adapters": ("orcale",)},
    ),
    ids=str,
)
def test_settings_that_cannot_be_run_are_refused(change) -> None:
    with pytest.raises(RetorqueError):
        run(replace(TINY, **change))


@pytest.mark.parametrize(
    ("arguments", "says"),
    (
        (["--robots", "pandda"], "did you mean 'panda'"),
        (["--robots", "g1"], "free base"),
        (["--robots", "missing.urdf"], "no file"),
        (["--adapters", "orcale"], "did you mean 'oracle'"),
        (["--trials", "0"], "--trials must be between 1 and 100000"),
        (["--trials", "many"], "--trials"),
        (["--trails", "3"], "did you mean '--trials'"),
    ),
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_bad_input_exits_with_2_one_sentence_and_no_file(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "tracking", *arguments, "--json", "out/rows.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("retorque: ") and error.count("\n") == 1
    assert says in error
    assert not list(tmp_path.iterdir())
