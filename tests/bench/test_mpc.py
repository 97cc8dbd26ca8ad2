"""Benches of planning and identification, each on a few steps."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from retorque.bench.mpc import (
    mpc_adapter,
    mpc_exploration,
    mpc_planner,
    mpc_speed,
    mpc_start_time,
    mpc_windows,
    one_run,
)
from retorque.bench.mpc import mpc_bench as mpc
from retorque.plan.escape import EscapeSettings
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.real_time import RealTimeTrace
from retorque.work.errors import RetorqueError


def short(name: str, variant: str = "paper") -> MpcTask:
    tiny = EscapeSettings(duration=2.0, samples=6, generations=2, iterations=2)
    return replace(make_task(name, variant), steps=15, escape=tiny)


@pytest.fixture(autouse=True)
def few_steps(monkeypatch) -> None:
    for module in (mpc, mpc_planner, mpc_start_time, mpc_exploration, one_run):
        monkeypatch.setattr(module, "make_task", short)
        if hasattr(module, "run_jobs"):
            monkeypatch.setattr(module, "run_jobs", lambda function, jobs, *_: [function(*job) for job in jobs])


def test_the_table_has_a_row_for_time_and_success() -> None:
    report = mpc.run(mpc.Settings(tasks=("cartpole",), policies=("information", "naive"), noises=("white",), seeds=2))
    found = {(row["method"], row["metric"]): row for row in report.as_json()["rows"]}
    row = found["information", "time to objective"]
    assert row["noise"] == "white" and row["robot"] == "cartpole" and (row["reached"], row["trials"]) == (0, 2)
    assert found["naive", "success"]["mean"] == 0.0 and found["naive", "time to objective"]["paper"] == 7.57
    assert ("information", "truth inside 95 % band") in found


def test_errors_are_given_for_each_change_and_bands_for_all_values() -> None:
    runs = [
        {"reached": 2.0, "errors": [[0.1, 0.2], [0.3, 0.1]], "inside": 90, "values": 100},
        {"reached": np.nan, "errors": [[0.4, 0.0]], "inside": 10, "values": 20},
    ]
    found = {row.metric: row for row in mpc._rows("cartpole", "information", "white", mpc.Settings(), runs)}
    errors = found["parameter error 1 s after a change"]
    assert errors.extra["by_change"] == pytest.approx([0.3, 0.3]) and errors.mean == pytest.approx(0.3)
    band = found["truth inside 95 % band"]
    assert band.extra["all_values"] == pytest.approx(100 / 120) and band.mean == pytest.approx(0.7)
    assert found["time to objective"].mean == 2.0 and found["success"].mean == 0.5


def test_a_cell_that_is_reached_counts(monkeypatch) -> None:
    monkeypatch.setattr(mpc_planner, "one", lambda name, variant, cell, seed: 1.0 if cell[0] < 3.0 else np.nan)
    report = mpc_planner.run(mpc_planner.Settings(tasks=("cartpole",), points=2))
    cells, passed = report.rows
    assert cells.mean == 0.5 and cells.trials == 4 and len(cells.extra["failed"]) == 2
    assert passed.trials == 3 and passed.mean == pytest.approx(2.0 / 3.0)


def test_a_known_cell_runs() -> None:
    assert np.isnan(mpc_planner.one("cartpole", "paper", (1.0, 1.0), 1000))


def test_rules_and_exploration_run() -> None:
    report = mpc_start_time.run(mpc_start_time.Settings(seeds=1, rules=("fixed", "quantile")))
    assert [row.method for row in report.rows] == ["fixed", "quantile"] and report.rows[0].paper == 8.20
    report = mpc_exploration.run(mpc_exploration.Settings(task="double-pendulum", seeds=1))
    assert len(report.rows) == 4 and report.rows[1].paper == 4.028


def test_windows_are_fitted_and_changes_found(monkeypatch) -> None:
    monkeypatch.setattr(mpc_windows, "run_jobs", lambda function, jobs, *_: [function(*job) for job in jobs])
    ratios, diverged = mpc_windows.fitted(30, 25, 1000)
    assert diverged == 0 and np.all(ratios < 1.5) and np.all(ratios > 0.5)
    monkeypatch.setattr(mpc_windows, "SETTLED", 60)
    alarms, inside = mpc_windows.watched(1000, 80, True)
    assert alarms and 60 < alarms[0] <= 75 and len(inside) == 40
    answers = {True: ([70], np.ones(2)), False: ([], np.array([1.0, 0.0]))}
    monkeypatch.setattr(mpc_windows, "watched", lambda seed, steps, change: answers[change])
    report = mpc_windows.run(mpc_windows.Settings(windows=2, lengths=(20,), changes=2))
    found = {row.metric: row.mean for row in report.rows}
    assert found["delay of detection"] == 10.0 and found["false alarms in 60 s"] == 0.0
    assert found["truth inside 95 % band"] == 0.5


def test_iterations_are_timed() -> None:
    report = mpc_speed.run(mpc_speed.Settings(horizon=20, repeats=3))
    found = {(row.robot, row.method) for row in report.rows}
    assert {("cartpole", "ilqr"), ("panda", "ilqr"), ("panda", "window fit")} <= found
    assert all(row.mean > 0.0 and row.unit == "ms" and row.metric == "iteration" for row in report.rows)


def test_a_run_is_drawn(tmp_path: Path) -> None:
    outcome = one_run.run(one_run.Settings(task="arm-centre", policy="information", render=tmp_path / "run.png"))
    (written,) = outcome.write_files()
    assert Path(written[1]).read_bytes().startswith(b"\x89PNG")
    leak = one_run.run(one_run.Settings(task="cartpole", policy="oracle", state="true"))
    assert any("leak" in str(shown.what) for shown in leak.shown)


def test_real_time_has_a_command(monkeypatch) -> None:
    asked = {}

    def pretend(name, how, duration, *, variant, kill):
        asked.update(name=name, kills=[kill(tick) for tick in range(300) if kill(tick)])
        counts = dict.fromkeys(("planner", "modeller"), 2)
        few = {"ticks": 300, "missed": 1, "starved": 0, "plans": 9, "models": 8, "restarts": counts}
        return RealTimeTrace(**few, age=np.full(300, 0.02), gaps=[0.4, 0.2], largest=1.0, reached=np.nan)

    monkeypatch.setattr(one_run, "run_real_time", pretend)
    outcome = one_run.run(one_run.Settings(task="cartpole", real_time=True, duration=3.0, kills=2))
    assert asked == {"name": "cartpole", "kills": ["planner", "modeller"] * 2}
    cells = outcome.shown[0].what.columns[1]._cells
    assert "1 of 300" in cells and "2 of 4, 0.40 s" in cells
    for wrong in ({"kills": 1}, {"real_time": True, "state": "true"}, {"real_time": True, "explore": "information"}):
        with pytest.raises(RetorqueError, match="real"):
            one_run.run(one_run.Settings(task="cartpole", **wrong))


def test_a_panda_reaches_with_a_model_and_with_an_adapter() -> None:
    reach = import_module("retorque.tasks.mpc.over_adapter").reach
    plain = reach("ideal", "direct", 1000, reaches=1, time=0.4)
    assert np.all(np.isfinite(plain.distance)) and plain.distance[0] < 0.6 and 0.0 < plain.effort < 1.0


def test_what_is_mistyped_is_refused() -> None:
    with pytest.raises(RetorqueError, match="policy"):
        mpc.run(mpc.Settings(policies=("paperr",)))
    with pytest.raises(RetorqueError, match="noise"):
        mpc.run(mpc.Settings(noises=("pink",)))
    with pytest.raises(RetorqueError, match="--seeds"):
        mpc_start_time.run(mpc_start_time.Settings(seeds=0))
    with pytest.raises(RetorqueError, match="unknown adapter"):
        mpc_adapter.run(mpc_adapter.Settings(adapters=("direct", "tamm")))
