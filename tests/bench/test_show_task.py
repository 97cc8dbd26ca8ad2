"""`retorque task`: what is played, and the pictures of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from retorque.bench import task_film
from retorque.bench.show_task import TaskSettings, show
from retorque.robots.robot import Robot
from retorque.tasks.experiments import TASKS, make_task
from retorque.tasks.policy_task import Robots
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end early, with two pictures in a strip; skipped where nothing can be rendered."""
    ball = make_task("ball", Robot.load("panda"), 1, 0)
    try:
        with task_film.GoalCamera(ball, ball.target(Robots.ideal(ball.robot, 1))):
            pass
    except RetorqueError as error:
        pytest.skip(str(error))
    for name, task in TASKS.items():
        monkeypatch.setattr(task, "duration", 0.4)
        monkeypatch.setitem(task_film.STILLS, name, (0.2, 0.4))


@pytest.mark.parametrize(("name", "end"), (("push", "failed"), ("flip", "failed"), ("ball", "goals")))
def test_a_strip_has_three_robots_and_the_goal(
    name: str, end: str, short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    labelled = task_film._labelled

    def listening(image: Array, text: str, moment: float) -> Array:
        said.append(text)
        return labelled(image, text, moment)

    monkeypatch.setattr(task_film, "_labelled", listening)
    file = tmp_path / "strip.png"
    report = show(name, TaskSettings(adapter="recursive", trials=1, render=file))
    assert [row.method for row in report.rows] == ["ideal", "direct", "recursive"]
    with Image.open(file) as strip:
        picture = np.asarray(strip).astype(int)
    assert picture.shape == (3 * 324, 2 * 360, 3)
    assert len(said) == 6 and said[0].startswith("ideal robot") and said[-1].startswith("real robot, recursive")
    assert all(end in text for text in said)
    red, green, blue = np.moveaxis(picture, -1, 0)
    marks = (green > 1.5 * red) & (green > 1.2 * blue)
    assert marks.any() == (name != "flip")  # a cube has no place to go to


def test_an_animation_has_five_pictures_a_second(short: None, tmp_path: Path) -> None:
    file = tmp_path / "film.gif"
    show("ball", TaskSettings(adapter="recursive", trials=1, render=file))
    with Image.open(file) as film:
        assert film.n_frames == 2 and film.size == (3 * 360, 324)  # type: ignore[attr-defined]


def test_other_pictures_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match=r"\.png or a \.gif"):
        show("ball", TaskSettings(render=tmp_path / "film.mp4"))
