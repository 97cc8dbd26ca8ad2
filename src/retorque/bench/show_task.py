"""One task played three times: by the ideal robot, by a real one, and by a real one with an adapter."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from retorque.bench.adapters import AdapterChoice, check_adapters, supervised
from retorque.bench.report import Report, Row, recorded
from retorque.robots.robot import Robot
from retorque.simulate.cameras.camera import Camera, View
from retorque.simulate.target import Target
from retorque.tasks.experiments import POLICIES, make_policy, make_task
from retorque.tasks.policy_task import PolicyTask, Robots, play
from retorque.tasks.sight import open_eyes
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import RetorqueError
from retorque.work.files import check_file, write_whole
from retorque.work.jobs import progress

VIEWS = {
    "push": View(at=(0.5, 0.0, 0.12), distance=1.15, azimuth=145.0, elevation=-30.0),
    "flip": View(at=(0.47, 0.0, 0.1), distance=0.85, azimuth=115.0, elevation=-14.0),
    "ball": View(at=(0.62, 0.0, 0.72), distance=0.95, azimuth=140.0, elevation=-28.0),
}
"""From where each task is seen."""
FRAMES = 5.0
"""Pictures a second of an animation."""
STILLS = 5
"""Pictures of each robot in a strip."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """Settings of `retorque task`."""

    adapter: str = "default"
    """What corrects the torques: an adapter on board, or your own as MODULE:CLASS."""
    policy: str = ""
    """Which of the task's policies acts; default: the first that it has."""
    policy_weights: Path | None = None
    """The policy's weights instead of the ones on board."""
    robot: str = "panda"
    """An arm of the Panda's size."""
    payload: float = 0.0
    """On top of what is hidden [kg]."""
    trials: int = 4
    """Robots; the first is drawn."""
    seed: int = 0
    """Of everything random."""
    render: Path | None = None
    """Draw what happened: a strip of pictures (.png) or an animation (.gif)."""
    json: Path | None = None
    """Also write the rows to this file."""


def show_push(settings: TaskSettings) -> Report:
    """A box pushed to a pose."""
    return show("push", settings)


def show_flip(settings: TaskSettings) -> Report:
    """A cube flipped onto its next face."""
    return show("flip", settings)


def show_ball(settings: TaskSettings) -> Report:
    """A ball moved from goal to goal on a plate."""
    return show("ball", settings)


def show(name: str, settings: TaskSettings) -> Report:
    """Play the task with each robot, draw it where asked, and report the scores."""
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_between("--payload", settings.payload, 0.0, 20.0, "kg")
    check_adapters((settings.adapter,))
    if settings.render is not None:
        if settings.render.suffix.lower() not in (".png", ".gif"):
            raise RetorqueError(f"--render makes a .png or a .gif, not '{settings.render.name}'")
        check_file(settings.render)
    policy = settings.policy or POLICIES[name][0]
    task = make_task(name, Robot.load(settings.robot), settings.trials, settings.seed)
    pictures: dict[str, list[Array]] = {}
    rows = []
    with progress() as bar:
        shown = bar.add_task(name, total=3 * round(task.duration / 1e-3))
        for method in ("ideal", "direct", settings.adapter):
            if method == "ideal":
                robots = Robots.ideal(task.robot, task.trials)
            else:
                robots = Robots.hidden(task.robot, task.trials, settings.seed, settings.payload)
            target = task.target(robots)
            choice = AdapterChoice(method) if method != "ideal" else AdapterChoice("direct")
            adapter = supervised(choice, task.robot, task.trials, settings.seed, partial(getattr, target, "parameters"))
            acts = make_policy(task, policy, settings.policy_weights, settings.seed)
            open_eyes(acts, target, settings.seed)
            film = _Film(task, target, settings.render)
            scores = play(task, target, acts, adapter, progress=lambda n: bar.advance(shown, n), look=film.look)
            pictures[method] = film.end()
            rows.append(_row(task, settings.robot, method, scores, policy))
    if settings.render is not None:
        _draw(settings.render, pictures, rows)
    return Report(
        bench=f"task {name}",
        settings=recorded(settings),
        rows=rows,
        notes="the same starts, goals and hidden parameters in every row; the adapter is supervised and starts cold",
    )


class _Film:
    """Takes pictures of the first trial now and then."""

    def __init__(self, task: PolicyTask, target: Target, file: Path | None):
        self._camera = None if file is None else Camera(target, VIEWS[task.name])
        still = file is not None and file.suffix.lower() == ".png"
        self._every = round((task.duration / STILLS if still else 1.0 / FRAMES) / target.timestep)
        self._taken: list[Array] = []

    def look(self, tick: int) -> None:
        """A tick is about to begin."""
        if self._camera is not None and (tick + 1) % self._every == 0:
            self._taken.append(self._camera.picture())

    def end(self) -> list[Array]:
        """The pictures; the camera is put away."""
        if self._camera is not None:
            self._camera.__exit__(None, None, None)
        return self._taken


def _row(task: PolicyTask, robot: str, method: str, scores: Array, policy: str) -> Row:
    return Row.of(
        scores,
        robot=robot,
        method=method,
        metric=task.metric,
        unit=task.unit,
        extra={"policy": policy, "trial_values": scores.tolist()},
    )


def _draw(path: Path, pictures: dict[str, list[Array]], rows: list[Row]) -> None:
    """Write the strip or the animation whole."""
    values = {row.method: row.extra["trial_values"][0] for row in rows}
    titles = {"ideal": "ideal robot", "direct": "real robot, uncorrected"}
    labelled = {
        method: [
            _labelled(image, f"{titles.get(method, f'real robot, {method}')}: {values[method]:g}") for image in taken
        ]
        for method, taken in pictures.items()
    }
    data = io.BytesIO()
    if path.suffix.lower() == ".png":
        strip = np.concatenate([np.concatenate(taken, axis=1) for taken in labelled.values()], axis=0)
        Image.fromarray(strip).save(data, "PNG")
    else:
        frames = [Image.fromarray(np.concatenate(three, axis=1)) for three in zip(*labelled.values(), strict=True)]
        small = [frame.quantize(64) for frame in frames]
        small[0].save(data, "GIF", save_all=True, append_images=small[1:], duration=round(1000.0 / FRAMES), loop=0)
    write_whole(path, data.getvalue())


def _labelled(image: Array, text: str) -> Array:
    picture = Image.fromarray(np.ascontiguousarray(image))
    ImageDraw.Draw(picture).text((8, 6), text, fill=(30, 40, 55), font=ImageFont.load_default(size=14))
    return np.asarray(picture)
