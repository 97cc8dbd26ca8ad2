"""`retorque train push`: a teacher (the planner's forward model, or a policy by PPO), or its student."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retorque.tasks.push.push_network import PPO
from retorque.tasks.push.training import train_ppo, train_push_model, train_student
from retorque.work.jobs import JobSettings


@dataclass(frozen=True, kw_only=True)
class PushTeacher(JobSettings):
    """Settings of `retorque train push`."""

    method: Literal["planner", "ppo", "student"] = "planner"
    """The planner's forward model from random pushes, a policy by proximal policy optimisation, or its student, which
    sees the box through depth cameras only."""
    robot: str = "panda"
    """An arm whose gripper points down at home."""
    pushes: int = 3840
    """Planner: random pushes to learn from."""
    batch: int = 64
    """Planner: pushes simulated together."""
    steps: int = 0
    """Training steps of the planner's model, the policy's pushes on the engine, or the student's steps in a round; 0:
    6,000, 20,000 and 400."""
    imagined: int = 400_000
    """PPO: pushes in the planner's forward model before those on the engine."""
    environments: int = 0
    """PPO, student: boxes pushed together; 0: 128 and 64."""
    place_only: bool = False
    """PPO: learn to push to a place, whatever the yaw."""
    width: int = 128
    """Planner, PPO: of the two hidden layers."""
    rounds: int = 8
    """Student: rounds of pushing and learning."""
    teacher: Path = PPO
    """Student: weights of the policy that it learns from."""
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
            environments=s.environments or 128,
            place_only=s.place_only,
            width=s.width,
            seed=s.seed,
            out=s.out,
        )
        return train_ppo.train(own)
    if s.method == "student":
        return train_student.train(
            train_student.StudentTraining(
                robot=s.robot,
                rounds=s.rounds,
                environments=s.environments or 64,
                steps=s.steps or 400,
                teacher=s.teacher,
                seed=s.seed,
                out=s.out,
            )
        )
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
