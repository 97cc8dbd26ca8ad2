"""Demonstrations by scripted operators, compliance at work beneath them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.control.comply.compliance import Compliance
from retorque.tasks.scoop.pose_recorder import PoseRecorder, ScoopEyes
from retorque.tasks.scoop.pose_source import PoseSource
from retorque.tasks.scoop.scoop_frames import Frames
from retorque.tasks.scoop.scoop_task import ScoopSettings, ScoopTask
from retorque.tasks.scoop.scripted_scoop import ScriptedScoop
from retorque.work.errors import RetorqueError

AT_ONCE = 20
"""Episodes simulated together."""


def demonstrate(task: ScoopTask, source: PoseSource, progress: Callable[[int], None] | None = None) -> list[Frames]:
    """Episodes of the trials that ended well, led by a source."""
    controller = task.controller("retorque")
    assert isinstance(controller, Compliance)
    recorder = PoseRecorder(source, controller, ScoopEyes(task, task.settings.seed))
    score = task.run(task.policy(recorder), controller, progress=progress)
    return [episode for episode, well in zip(recorder.episodes(), score.success, strict=True) if well]


def record_scoops(count: int, seed: int, progress: Callable[[int], None] | None = None) -> list[Frames]:
    """Successful episodes among `count`, each on a table of its own; none at all is refused."""
    found: list[Frames] = []
    for start in range(0, count, AT_ONCE):
        own = int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
        task = ScoopTask(ScoopSettings(trials=min(AT_ONCE, count - start), seed=own))
        found += demonstrate(task, ScriptedScoop(task.place, own), progress)
    if not found:
        raise RetorqueError(f"none of {count} scripted scoops succeeded; record more")
    return found
