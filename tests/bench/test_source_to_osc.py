"""The source-to-OSC bench: its rows, the published figures beside them, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from retorque.bench.source_to_osc import PAPER, Settings, run
from retorque.robots.robot import Robot
from retorque.tasks.source_to_osc_task import SourceToOscSettings, SourceToOscTask
from retorque.work.errors import RetorqueError


def test_rows_of_every_adapter_condition_and_state(tmp_path):
    world = {"trials": 2, "seed": 1000, "source_duration": 1.0, "osc_duration": 1.0}
    settings = Settings(adapters=("direct", "particle", "oracle"), **world, workers=1, keep=tmp_path)
    report = run(settings)
    assert [(row.method, row.extra["condition"], row.extra["state"]) for row in report.rows] == [
        ("direct", "nominal", "-"),
        ("direct", "+1 kg", "-"),
        ("particle", "nominal", "reset"),
        ("particle", "nominal", "carried"),
        ("particle", "+1 kg", "reset"),
        ("particle", "+1 kg", "carried"),
        ("oracle", "nominal", "-"),
        ("oracle", "+1 kg", "-"),
    ]
    mean = {(row.method, row.extra["condition"], row.extra["state"]): row.mean for row in report.rows}
    paper = {(row.method, row.extra["condition"], row.extra["state"]): row.paper for row in report.rows}
    for condition in ("nominal", "+1 kg"):
        assert mean["oracle", condition, "-"] < 0.2 * mean["direct", condition, "-"]
    assert paper["particle", "+1 kg", "carried"] == PAPER["particle"]["+1 kg", "carried"] == 4.65
    assert paper["direct", "nominal", "-"] == 4.09 and paper["oracle", "nominal", "-"] is None
    assert all(row.unit == "cm" and row.trials == 2 for row in report.rows)
    for row in report.rows:
        firm = [
            value for value, moved in zip(row.extra["trial_values"], row.extra["shaken"], strict=True) if moved < 1.0
        ]
        assert row.extra["worst, firm"] == max(firm, default=0.0) <= row.extra["worst"]
    (kept,) = tmp_path.iterdir()
    written = kept.stat().st_mtime_ns
    assert run(replace(settings, workers=2)).rows == report.rows
    assert list(tmp_path.iterdir()) == [kept] and kept.stat().st_mtime_ns == written  # nothing was done again


def test_a_part_is_the_same_experiment():
    task = SourceToOscTask(Robot.load("panda"), SourceToOscSettings(trials=3, seed=5, osc_duration=3.2))
    part = task.part(slice(1, 3))
    assert part.poses.position.shape == (2, 3, 3)  # trials, start and two waypoints, xyz
    np.testing.assert_array_equal(part.poses.at(2.0).position, task.poses.at(2.0).position[1:])
    np.testing.assert_array_equal(part.source.reference.at(2.0).position, task.source.reference.at(2.0).position[1:])
    assert np.all(part.target("+1 kg").parameters.payload_mass == 1.0)
    assert np.all(part.target("nominal").parameters.payload_mass == 0.0)
    assert np.all(part.target("nominal").parameters.friction_amplitude == task.source.parameters.friction_amplitude[1:])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trials": 0}, "--trials"),
        ({"adapters": ("recursiv",)}, "did you mean 'recursive'"),
        ({"robots": ()}, "--robots"),
        ({"osc_duration": 0.0}, "--osc-duration"),
        ({"seed": -1}, "--seed"),
    ],
)
def test_bad_settings_are_refused(changes, words):
    with pytest.raises(RetorqueError, match=words):
        run(Settings(**changes))
