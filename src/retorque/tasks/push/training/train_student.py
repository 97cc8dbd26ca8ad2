"""Training of the push's student by DAgger: it pushes, its teacher says what it should have done, it learns."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.curves import draw_curves
from retorque.learn.run_folder import RunFolder
from retorque.robots.robot import Robot
from retorque.tasks.push.push_network import PPO, load_push_network
from retorque.tasks.push.student_network import StudentNetwork, StudentShape, save_student
from retorque.tasks.push.training.student_lessons import Classroom, Lessons
from retorque.tasks.push.training.student_module import Student, student_loss
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.jobs import progress
from retorque.work.tensors import load_tensors, save_tensors

SHARD, SHARD_FORMAT = "looks at pushed boxes", 1
TAUGHT = 0.5
"""How much less the teacher pushes in each round than in the one before."""
KEPT = ("points", "there", "hand", "box", "goal")
"""What a file of lessons holds."""


@dataclass(frozen=True, kw_only=True)
class StudentTraining:
    """Settings of `retorque train push --method student`."""

    robot: str = "panda"
    """An arm whose gripper points down at home."""
    rounds: int = 8
    """Of pushing and learning; in the first the teacher pushes."""
    environments: int = 64
    """Boxes pushed together in a round."""
    steps: int = 400
    """Learning steps of a round."""
    batch: int = 24
    """Episodes in a step."""
    learning_rate: float = 3e-3
    """Of Adam at first; it falls to a tenth."""
    teacher: Path = PPO
    """Weights of the policy that says what to do."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("push-student")
    """Folder of lessons, checkpoints and weights; a run that was stopped goes on."""


def train(settings: StudentTraining) -> Path:
    """Push, be told, and learn; the path of the weights."""
    s = settings
    check_between("--rounds", s.rounds, 1, 100_000)
    check_between("--environments", s.environments, 2, 65536)
    check_between("--steps", s.steps, 1, 10_000_000)
    check_between("--batch", s.batch, 1, 65536)
    robot = Robot.load(s.robot)
    folder = RunFolder(s.out, {name: value for name, value in asdict(s).items() if name != "out"})
    begun = time.monotonic()
    room = Classroom(robot, load_push_network(s.teacher, robot), s.environments)
    torch.manual_seed(s.seed)
    shape = StudentShape()
    network = Student(shape)
    optimiser = torch.optim.Adam(network.parameters(), lr=s.learning_rate)
    first = 0
    if folder.checkpoint.exists():
        first = int(load_checkpoint(folder.checkpoint, network, optimiser)[0]["rounds"])
        folder.forget_after(first * s.steps)
    figures: dict[str, float] = {}
    with progress() as bar:
        task = bar.add_task("student", total=s.rounds, completed=first)
        for number in range(first, s.rounds):
            _lesson(s, number, room, StudentNetwork(student_tensors(network), shape) if number else None)
            figures = _learn(s, number, room, network, optimiser)
            save_checkpoint(folder.checkpoint, network, optimiser, {"rounds": number + 1})
            folder.note(step=(number + 1) * s.steps, **figures)
            bar.update(task, advance=1, description=f"student, {figures['arrived']:.0%} arrive")
    draw_curves(folder.metrics(), s.out / "curves.png")
    made = {"seed": s.seed, "rounds": s.rounds, "steps": s.rounds * s.steps, **(folder.metrics() or [{}])[-1]}
    made["minutes"] = round((time.monotonic() - begun) / 60.0, 1)
    return save_student(folder.weights, student_tensors(network), shape, robot, made)


def student_tensors(network: Student) -> dict[str, Array]:
    """Weights by name."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def _file(settings: StudentTraining, number: int) -> Path:
    return settings.out / f"lessons-{number:04d}.safetensors"


def _lesson(settings: StudentTraining, number: int, room: Classroom, student: StudentNetwork | None) -> None:
    """Play a round where its file is missing."""
    path = _file(settings, number)
    if path.exists():
        return
    seed = int(np.random.SeedSequence([settings.seed, number]).generate_state(1)[0])
    lessons, arrived = room.play(student, TAUGHT**number, seed)
    tensors = {name: getattr(lessons, name).astype(np.float32) for name in KEPT}
    save_tensors(path, tensors, SHARD, SHARD_FORMAT, {"arrived": arrived, "seed": seed})


def _learn(
    settings: StudentTraining, number: int, room: Classroom, network: Student, optimiser: torch.optim.Optimizer
) -> dict[str, float]:
    """Learn from all rounds so far; figures of the last steps."""
    files = [load_tensors(_file(settings, k), SHARD, SHARD_FORMAT, finite=True) for k in range(number + 1)]
    parts = {name: np.concatenate([tensors[name] for tensors, _ in files], axis=int(name != "goal")) for name in KEPT}
    lessons = Lessons(parts["points"], parts["there"], parts["hand"], parts["box"], parts["goal"])
    mean: dict[str, float] = {}
    for step in range(settings.steps):
        share = (number * settings.steps + step) / (settings.rounds * settings.steps)
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * (0.1 + 0.45 * (1.0 + np.cos(np.pi * share)))
        rng = np.random.default_rng(np.random.SeedSequence([settings.seed, number, step]))
        rows = rng.integers(0, lessons.points.shape[1], settings.batch)
        loss, figures = student_loss(network, room.looks(lessons, rows, rng))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        figures["loss"] = float(loss.detach())
        mean = {name: 0.98 * mean.get(name, value) + 0.02 * value for name, value in figures.items()}
    return {**mean, "arrived": float(files[-1][1]["arrived"])}
