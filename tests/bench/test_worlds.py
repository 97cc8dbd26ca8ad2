"""The worlds bench: rows with their world, ratios and regrets, own adapters, and bad input."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from retorque.bench import worlds as bench
from retorque.bench.adapters import AdapterChoice
from retorque.bench.report import Row
from retorque.bench.worlds import Settings, run
from retorque.bench.worlds_report import WorldsReport
from retorque.tasks.worlds import WORLDS
from retorque.tasks.worlds.world_task import WorldRun, WorldTask
from retorque.work.errors import RetorqueError

OWN = "retorque.adapt.direct:Direct"


@pytest.fixture(scope="module")
def report() -> WorldsReport:
    short = {name: replace(WORLDS[name], duration=6.6 if name == "wall" else 1.0) for name in ("held", "wall", "nan")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "WORLDS", short)
        return run(Settings(worlds=("all",), adapters=(OWN,), trials=1, workers=1))


def test_rows_carry_world_adapter_robot_and_metric(report: WorldsReport, tmp_path: Path) -> None:
    report.save(tmp_path / "worlds.json")
    content = json.loads((tmp_path / "worlds.json").read_text())
    keys = [(row["world"], row["method"], row["robot"], row["metric"]) for row in content["rows"]]
    for world in ("held", "wall", "nan"):
        for method in (OWN, "direct"):
            assert (world, method, "panda", "joint RMSE") in keys
    assert [key[0] for key in keys if key[3] == "end force"] == ["wall", "wall"]
    assert {row["trained on"] for row in content["rows"]} == {False}
    assert {s["method"] for s in content["summary"]} == {OWN, "direct"}
    for s in content["summary"]:
        assert s["worst ratio to direct"] == pytest.approx(1.0)  # both are the same adapter


def test_the_table_has_a_row_a_world_and_a_column_an_adapter(report: WorldsReport) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report.table())
    text = console.export_text()
    for word in ("held *", "wall *", "direct", OWN, "worst ratio to direct", "mean regret", "end force"):
        assert word in text


def test_settings_reach_the_adapter_and_the_ideal_robot_moves_once_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    world = replace(WORLDS["usual"], duration=0.3)
    ideals: list[str] = []
    moves = WorldTask.ideal

    def noted(task: WorldTask) -> WorldRun:
        ideals.append(task.world.name)
        return moves(task)

    monkeypatch.setattr(WorldTask, "ideal", noted)
    bench.ideal_run.cache_clear()
    bounded = AdapterChoice("integral", settings=(("share", "0.0"),))
    found = [
        bench.measured("panda", world, choice, 2, 0, True)["joint RMSE"][0].tolist()
        for choice in (AdapterChoice("direct"), bounded, AdapterChoice("integral"))
    ]
    assert found[0] == found[1] != found[2]  # a bound of nothing is no correction
    assert ideals == ["usual"]
    with pytest.raises(RetorqueError, match="unknown setting"):
        run(Settings(worlds=("usual",), adapters=("integral",), adapter_settings=("integral.shre=0.0",)))


def test_ratio_and_regret_are_of_the_worst_world() -> None:
    rows = [
        Row.of([value], robot="panda", method=method, metric="joint RMSE", unit="deg",
               extra={"world": world, "trained on": True, "worst": value, "ideal": 0.0, "trial_values": [value]})
        for world, values in {"a": (2.0, 1.0, 4.0), "b": (0.01, 0.5, 0.2), "c": (3.0, 3.0, 0.3)}.items()
        for method, value in zip(("direct", "good", "bad"), values, strict=True)
    ]  # fmt: skip
    found = {s["method"]: s for s in WorldsReport(bench="worlds", settings={}, rows=rows).summary()}
    assert found["good"]["worst ratio to direct"] == pytest.approx(10.0) and found["good"]["in"] == "b"
    assert found["good"]["worst regret"] == pytest.approx(10.0)
    assert found["bad"]["worst regret"] == pytest.approx(4.0) and found["bad"]["regretted in"] in ("a", "b")
    assert found["direct"]["worst ratio to direct"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"worlds": ("wal",)}, "did you mean 'wall'"),
        ({"worlds": ()}, "at least one world"),
        ({"adapters": ("defalt",)}, "default"),
        ({"adapters": ()}, "at least one adapter"),
        ({"robots": ()}, "at least one robot"),
        ({"trials": 0}, "--trials"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change: dict, words: str) -> None:
    with pytest.raises(RetorqueError, match=words):
        run(Settings(**{"workers": 1, **change}))


def test_the_compiled_core_gives_the_same_figures() -> None:
    short = {"usual": replace(WORLDS["usual"], duration=0.4)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "WORLDS", short)
        found = [
            run(Settings(worlds=("usual",), adapters=("default",), trials=1, workers=1, compiled=compiled)).rows[0].mean
            for compiled in (False, True)
        ]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
