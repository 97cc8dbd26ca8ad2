"""`retorque train push`: either teacher, the planner's forward model or a policy by reinforcement learning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retorque.tasks.push.training import train_ppo, train_push_model
from retorque.work.jobs import JobSettings


@dataclass(frozen=True, kw_only=True)
class PushTeacher(JobSettings):
    """Settings of `retorque train push`."""

    method: Literal["planner", "ppo"] = "planner"
    """The planner's forward model from random pushes, or a policy by proximal policy optimisation."""
    robot: str = "panda"
    """An arm whose gripper points down at home."""
    pushes: int = 3840
    """Planner: random pushes to learn from."""
    batch: int = 64
    """Planner: pushes simulated together."""
    steps: int = 0
    """Training steps of the planner's model, or the policy's pushes on the engine; 0: 6,000 and 20,000."""
    imagined: int = 400_000
    """PPO: pushes in the planner's forward model before those on the engine."""
    environments: int = 128
    """PPO: boxes pushed together."""
    place_only: bool = False
    """PPO: learn to push to a place, whatever the yaw."""
    width: int = 128
    """Of the two hidden layers."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("push-teacher")
    """Folder of checkpoints and weights; a run that was stopped goes on, with more steps too."""


def train(settings: PushTeacher) -> Path:
    """Train the teacher that was asked for; the path of its weights."""
    s = settings
    if s.method == "ppo":
        own = train_ppo.PpoTraining(
            robot=s.robot,
            imagined=s.imagined,
            steps=s.steps or 20_000,
            environments=s.environments,
            place_only=s.place_only,
            width=s.width,
            seed=s.seed,
            out=s.out,
        )
        return train_ppo.train(own)
    model = train_push_model.PushTraining(
        workers=s.workers,
        cluster=s.cluster,
        robot=s.robot,
        pushes=s.pushes,
        batch=s.batch,
        width=s.width,
        steps=s.steps or 6000,
        seed=s.seed,
        out=s.out,
    )
    return train_push_model.train(model)
