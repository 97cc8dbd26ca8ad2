"""Rows and reports: intervals that hold, JSON that any reader takes, and rates that do not depend on the workers."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from retorque.bench import tracking, worlds
from retorque.bench.adapters import halves
from retorque.bench.policy_tasks import PolicyTaskSettings, push
from retorque.bench.report import Report, Row, wilson
from retorque.bench.scatter import scatter_picture, tsne
from retorque.bench.tam_bottleneck import invariance_ratios
from retorque.tasks.worlds import WORLDS

FIELDS = {"robot": "panda", "method": "direct", "metric": "joint RMSE", "unit": "deg"}
SCHEMA: dict[str, type | tuple[type, ...]] = {
    "robot": str,
    "method": str,
    "metric": str,
    "unit": str,
    "mean": (float, int, type(None)),
    "std": (float, int, type(None)),
    "ci95": list,
    "trials": int,
    "paper": (float, int, type(None)),
}
"""What every reader of a row may rely on."""


def test_the_interval_of_a_mean_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for trials in (3, 10, 40):
        drawn = rng.normal(2.0, 5.0, (600, trials))
        inside = np.mean([low <= 2.0 <= high for low, high in (Row.of(values, **FIELDS).ci95 for values in drawn)])
        assert abs(inside - 0.95) < 0.03, trials


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), shift=st.floats(-10.0, 10.0))
def test_a_row_moves_and_scales_with_its_values_and_forgets_their_order(values: list[float], shift: float) -> None:
    row, back = Row.of(values, **FIELDS), Row.of(values[::-1], **FIELDS)
    moved = Row.of(np.array(values) * 2.0 + shift, **FIELDS)
    near = {"rtol": 1e-9, "atol": 1e-6}
    np.testing.assert_allclose((row.mean, row.std, *row.ci95), (back.mean, back.std, *back.ci95), **near)
    np.testing.assert_allclose((moved.mean, moved.std), (2.0 * row.mean + shift, 2.0 * row.std), **near)
    np.testing.assert_allclose(moved.ci95, 2.0 * np.array(row.ci95) + shift, **near)
    assert row.ci95[0] <= row.mean <= row.ci95[1] and row.trials == len(values)


def test_a_trial_that_diverged_is_seen_in_the_row() -> None:
    row = Row.of([1.0, np.inf], **FIELDS)
    assert row.mean == np.inf and row.trials == 2
    assert np.isnan(Row.of([1.0, np.nan], **FIELDS).mean)


@pytest.mark.parametrize(
    ("times", "mean", "reached"),
    [([2.0, np.nan, 4.0], 3.0, 2), ([np.nan] * 5, np.inf, 0), ([np.inf, 1.0], 1.0, 1)],
)
def test_runs_that_never_arrive_are_trials_too(times: list[float], mean: float, reached: int) -> None:
    row = Row.reached(np.array(times), extra={"noise": "white"}, **FIELDS)
    assert (row.mean, row.trials, row.extra) == (mean, len(times), {"reached": reached, "noise": "white"})


@settings(max_examples=60, deadline=None)
@given(successes=st.integers(0, 60), trials=st.integers(1, 60))
def test_a_rates_interval_is_wilsons(successes: int, trials: int) -> None:
    """Against the closed form (Wilson 1927)."""
    k, n, z = min(successes, trials), trials, 1.959963984540054
    centre, spread = (k + z * z / 2) / (n + z * z), z / (n + z * z) * np.sqrt(k * (n - k) / n + z * z / 4)
    low, high = wilson(np.array([1.0] * k + [0.0] * (n - k)))
    np.testing.assert_allclose((low, high), (centre - spread, centre + spread), atol=1e-12)
    assert 0.0 <= low <= k / n <= high <= 1.0 and high - low > 0.0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.floats(), min_size=1, max_size=5),
    extra=st.dictionaries(st.text("xyz ", min_size=1, max_size=4), VALUES, max_size=3),
)
def test_any_row_is_written_as_strict_json(values: list[float], extra: dict, tmp_path_factory) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        row = Row.of(values, **FIELDS, extra={**extra, "array": np.arange(2), "number": np.float32(2.0)})
    report = Report(bench="b", settings={"seed": np.int64(3), "out": Path("a")}, rows=[row], notes="n")
    path = report.save(tmp_path_factory.mktemp("rows") / "r.json")
    found = json.loads(path.read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity
    assert found["settings"]["seed"] == 3 and found["settings"]["out"] == "a" and found["notes"] == "n"
    (line,) = found["rows"]
    assert all(isinstance(line[name], kind) for name, kind in SCHEMA.items())
    assert line["array"] == [0, 1] and line["trials"] == len(values) and len(line["ci95"]) == 2


def test_a_table_shows_extras_of_any_row_and_no_markup_is_lost() -> None:
    rows = [
        Row.of([1.0], **FIELDS, extra={"worst": 2.5, "curve": [1, 2]}),
        Row.of([2.0], **{**FIELDS, "method": "own[1]", "unit": "N·m"}, paper=4.0, extra={"late": 3}),
    ]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(Report(bench="b", settings={}, rows=rows).table())
    text = console.export_text()
    for word in ("joint RMSE [deg]", "joint RMSE [N·m]", "worst", "late", "2.5", "4"):
        assert word in text, word
    assert "curve" not in text


@settings(max_examples=50, deadline=None)
@given(trials=st.integers(1, 500))
def test_halves_are_all_trials_once_in_order(trials: int) -> None:
    parts = halves(trials)
    assert [k for part in parts for k in range(trials)[part]] == list(range(trials))
    assert len(parts) <= 2 and max(part.stop - part.start for part in parts) <= max(8, (trials + 1) // 2)


def serial(backwards: bool):
    """Jobs one after the other in this process, as any worker would do them in any order."""

    def run(function, jobs, work, title, workers=0, cluster="", keep=None):
        order = range(len(jobs))[:: -1 if backwards else 1]
        found = {k: function(*jobs[k]) for k in order}
        return [found[k] for k in range(len(jobs))]

    return run


SHORT = {
    "tracking": lambda seed: tracking.run(
        tracking.Settings(robots=("z1",), adapters=("direct",), trials=8, duration=1.0, noise=True, seed=seed)
    ),
    "worlds": lambda seed: worlds.run(worlds.Settings(worlds=("short",), adapters=("direct",), trials=2, seed=seed)),
}


@pytest.mark.parametrize("name", SHORT)
def test_rows_follow_from_the_seed_whoever_does_the_jobs_in_whatever_order(name: str, monkeypatch) -> None:
    held = replace(WORLDS["held"], name="short", duration=0.5)
    monkeypatch.setattr(worlds, "WORLDS", {"short": held})
    found = []
    for backwards, seed in ((False, 0), (True, 0), (False, 1)):
        monkeypatch.setattr(f"retorque.bench.{name}.run_jobs", serial(backwards))
        found.append(SHORT[name](seed).as_json()["rows"])
    one, same, other = found
    assert one == same and one != other
    for row in one:
        assert all(isinstance(row[field], kind) for field, kind in SCHEMA.items())


def test_a_policys_bench_has_a_row_for_the_ideal_robot_and_one_an_adapter_and_condition(monkeypatch) -> None:
    drawn = {"nominal": 0.5, "+1 kg": 0.25}

    def played(function, jobs, work, title, workers, cluster, keep):
        """As if boxes had been pushed: the ideal robot always succeeds, the others in some trials."""
        rate = lambda job: 1.0 if job[2].adapter is None else drawn[job[3]]  # noqa: E731
        return [(np.arange(*job[6].indices(job[4])) % 4 < 4 * rate(job)).astype(float) for job in jobs]

    monkeypatch.setattr("retorque.bench.policy_tasks.run_jobs", played)
    report = push(PolicyTaskSettings(adapters=("direct", "recursive"), trials=40))
    found = {(row.method, row.extra["condition"]): row for row in report.rows}
    assert len(found) == 5 and {method for method, _ in found} >= {"direct", "recursive"}
    for (method, condition), row in found.items():
        rate = drawn[condition] if method in ("direct", "recursive") else 1.0
        assert row.mean == rate and row.trials == 40
        np.testing.assert_allclose(row.ci95, wilson(np.array(row.extra["trial_values"])))
        assert row.extra["behind ideal"].startswith(f"{1.0 - rate:.3g} ±")


def test_points_that_are_near_stay_near_in_the_plane(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = 20.0 * rng.standard_normal((4, 6))
    points = np.repeat(centres, 15, axis=0) + rng.standard_normal((60, 6))
    plane = tsne(points, 0)
    label = np.repeat(np.arange(4), 15)
    apart = np.linalg.norm(plane[:, None] - plane[None], axis=-1) + 1e9 * np.eye(60)
    assert np.mean(label[np.argmin(apart, axis=1)] == label) > 0.95
    np.testing.assert_array_equal(plane, tsne(points, 0))
    scatter_picture(points.reshape(4, 15, 6), tmp_path / "deep" / "a.png", 0)
    assert (tmp_path / "deep" / "a.png").read_bytes().startswith(b"\x89PNG")


def test_latents_of_the_condition_alone_are_invariant_and_those_of_the_motion_are_not() -> None:
    rng = np.random.default_rng(0)
    condition, motion = rng.standard_normal((2, 12, 5))
    noise = 1e-3 * rng.standard_normal((12, 12, 5))
    assert np.all(invariance_ratios(condition[:, None] + noise) < 0.01)
    assert np.all(invariance_ratios(motion[None] + noise) > 100.0)
    both = condition[:, None] + motion[None]
    assert np.mean(invariance_ratios(both)) == pytest.approx(1.0, abs=0.3)
    np.testing.assert_allclose(invariance_ratios(both), invariance_ratios(7.0 * both - 2.0))  # units do not matter
