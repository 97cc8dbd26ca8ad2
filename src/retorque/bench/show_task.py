"""One task played three times: by the ideal robot, by a real one, and by a real one with an adapter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retorque.bench.adapters import AdapterChoice, check_adapters, supervised
from retorque.bench.report import Report, Row, recorded
from retorque.bench.task_film import Film, draw
from retorque.robots.robot import Robot
from retorque.tasks.experiments import POLICIES, make_policy, make_task
from retorque.tasks.policy_task import PolicyTask, Robots, play
from retorque.tasks.sight import open_eyes
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import RetorqueError
from retorque.work.files import check_file
from retorque.work.jobs import progress


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
    films: dict[str, tuple[str, list[tuple[float, Array]]]] = {}
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
            film = Film(task, target, settings.render)
            scores = play(task, target, acts, adapter, progress=lambda n: bar.advance(shown, n), look=film.look)
            films[method] = (_end(task, scores[0]), film.end())
            rows.append(_row(task, settings.robot, method, scores, policy))
    if settings.render is not None:
        draw(settings.render, films)
    return Report(
        bench=f"task {name}",
        settings=recorded(settings),
        rows=rows,
        notes="the same starts, goals and hidden parameters in every row; the adapter is supervised and starts cold",
    )


def _row(task: PolicyTask, robot: str, method: str, scores: Array, policy: str) -> Row:
    return (Row.of if task.metric == "goals" else Row.rate)(
        scores,
        robot=robot,
        method=method,
        metric=task.metric,
        unit=task.unit,
        extra={"policy": policy, "trial_values": scores.tolist()},
    )


def _end(task: PolicyTask, score: float) -> str:
    """How a trial ended, in words."""
    if task.metric == "goals":
        return f"{score:g} goals"
    return "done" if score else "failed"
