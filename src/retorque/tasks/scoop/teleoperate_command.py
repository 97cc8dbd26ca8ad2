"""`retorque comply teleoperate`: a spoon led by a script or by a person, recorded for imitation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.table import Table

from retorque.control.comply.compliance import Compliance
from retorque.simulate.motor_target import MotorTarget
from retorque.tasks.scoop.hand_input import HELP, HandInput, terminal
from retorque.tasks.scoop.pose_recorder import PoseRecorder, ScoopEyes
from retorque.tasks.scoop.pose_source import PoseSource
from retorque.tasks.scoop.scoop_frames import save_episodes
from retorque.tasks.scoop.scoop_task import DOWN, START, ScoopScore, ScoopSettings, ScoopTask
from retorque.tasks.scoop.scripted_scoop import ScriptedScoop
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.files import check_file
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class TeleoperateSettings:
    """Settings of `retorque comply teleoperate`."""

    input: Literal["script", "keyboard"] = "script"
    """Who leads: a script, or keys and mouse of this terminal, in real time."""
    trials: int = 1
    """Tables that the script scoops from; a person has one."""
    seed: int = 0
    """Of table, ball and hidden friction."""
    seconds: float = 16.0
    """Longest time of an episode [s]; a person may want more."""
    record: Path | None = None
    """Write the episodes that ended well: what was seen, x_des, x_ref and the felt wrench."""
    render: Path | None = None
    """Write a picture (PNG) of the first episode."""


def teleoperate(settings: TeleoperateSettings) -> Outcome:
    """Lead the spoon, and say what came of it."""
    check_between("--trials", settings.trials, 1, 200)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_between("--seconds", settings.seconds, 0.1, 3600.0)
    for file in (settings.record, settings.render):
        if file is not None:
            check_file(file)
    by_hand = settings.input == "keyboard"
    trials = 1 if by_hand else settings.trials
    task = ScoopTask(ScoopSettings(trials=trials, seed=settings.seed, duration=settings.seconds))
    if by_hand:
        with terminal() as typed:
            hand = HandInput(typed, np.array(START), DOWN)
            recorder, score = _lead(task, hand, hand)
    else:
        recorder, score = _lead(task, ScriptedScoop(task.place, settings.seed), None)
    outcome = Outcome()
    outcome.show(_table(settings, score))
    episodes = recorder.episodes()
    well = [episode for episode, success in zip(episodes, score.success, strict=True) if success]
    if settings.record is not None:
        record = settings.record
        outcome.later("demonstrations", lambda: save_episodes(record, well, task.robot.name))
    if settings.render is not None:
        from retorque.tasks.scoop.scoop_picture import scoop_picture

        render = settings.render
        outcome.later("picture", lambda: scoop_picture(episodes[0], float(task.height[0]), render))
    return outcome


def _lead(task: ScoopTask, source: PoseSource, hand: HandInput | None) -> tuple[PoseRecorder, ScoopScore]:
    """Run once; with a hand on the keys no faster than time passes."""
    controller = task.controller("retorque")
    assert isinstance(controller, Compliance)
    recorder = PoseRecorder(source, controller, ScoopEyes(task, task.settings.seed))
    begun = time.monotonic()
    with progress() as bar:
        line = bar.add_task(HELP if hand else "scoop", total=task.settings.duration)

        def look(target: MotorTarget) -> bool:
            bar.update(line, completed=target.time)
            if hand is None:
                return False
            if controller.felt is not None and target.objects is not None:
                force, ball = controller.felt.wrench[0, 0, :3], target.objects[0, 0, :2]
                spoon = controller.admittance.position[0, 0]
                text = f"spoon {1e3 * spoon[0]:.0f} {1e3 * spoon[1]:.0f} {1e3 * spoon[2]:.0f} mm, "
                text += f"ball {1e3 * ball[0]:.0f} {1e3 * ball[1]:.0f} mm, felt {np.linalg.norm(force):.1f} N"
                bar.update(line, description=f"{text}; {HELP}")
            time.sleep(max(0.0, target.time - (time.monotonic() - begun)))
            return hand.ended

        score = task.run(task.policy(recorder), controller, look=look)
    return recorder, score


def _table(settings: TeleoperateSettings, score: ScoopScore) -> Table:
    table = Table(title=f"comply teleoperate: scoop and place, by {settings.input}")
    table.add_column("what")
    table.add_column("found", justify="right")
    table.add_row("balls in the bowl", f"{int(score.success.sum())} of {len(score.success)}")
    table.add_row("largest force on the table \\[N]", f"{score.peak.max():.1f}")
    return table
