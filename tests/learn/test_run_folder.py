"""A run's folder: one run's only, and its metrics survive a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from retorque.learn.run_folder import RunFolder
from retorque.work.errors import RetorqueError

OWN = {"seed": 1, "robots": ("panda",), "out": Path("a"), "training": {"rate": 0.1}}


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run", OWN)
    RunFolder(tmp_path / "run", dict(OWN))
    for change, names in (
        ({"seed": 2}, "seed"),
        ({"more": 1}, "more"),
        ({"training": {}, "seed": 0}, "seed, training"),
    ):
        with pytest.raises(RetorqueError, match=rf"other settings \({names}\)"):
            RunFolder(tmp_path / "run", {**OWN, **change})


@pytest.mark.parametrize("content", ["", "{", "3", "\x00"])
def test_a_folder_whose_settings_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(RetorqueError, match="cannot read"):
        RunFolder(tmp_path, OWN)


def test_metrics_beyond_the_step_that_a_run_resumes_from_are_forgotten(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, OWN)
    folder.forget_after(0)
    for step in (1, 20, 40):
        folder.note(step=step, loss=0.5)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6')  # cut by a crash
    assert [point["step"] for point in folder.metrics()] == [1, 20, 40]
    folder.forget_after(20)
    folder.note(step=21, loss=0.4)
    assert [point["step"] for point in RunFolder(tmp_path, OWN).metrics()] == [1, 20, 21]
