"""The tasks by name, and the policies that each of them has."""

from __future__ import annotations

from pathlib import Path

from retorque.loop.policy import Policy
from retorque.robots.robot import Robot
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.plate_planner import AS_PUBLISHED, PlatePlanner
from retorque.tasks.ball.plate_regulator import PlateRegulator
from retorque.tasks.flip.act_network import BY_PICTURES, load_act
from retorque.tasks.flip.act_network import ON_BOARD as FLIP_ACT
from retorque.tasks.flip.act_policy import ActPolicy
from retorque.tasks.flip.flip_task import FlipTask
from retorque.tasks.flip.scripted_flip import ScriptedFlip
from retorque.tasks.policy_task import PolicyTask
from retorque.tasks.push.box_task import BoxTask
from retorque.tasks.push.push_model import ON_BOARD as PUSH_MODEL
from retorque.tasks.push.push_model import load_push_model
from retorque.tasks.push.push_network import PPO, RMA, load_push_network
from retorque.tasks.push.push_planner import PushPlanner
from retorque.tasks.push.push_policy import NetworkPush
from retorque.tasks.push.student_network import STUDENT, load_student
from retorque.tasks.push.student_push import StudentPush
from retorque.work.errors import RetorqueError, unknown

TASKS: dict[str, type[BoxTask] | type[FlipTask] | type[BallTask]] = {
    "push": BoxTask,
    "flip": FlipTask,
    "ball": BallTask,
}
"""Every task."""
POLICIES: dict[str, tuple[str, ...]] = {
    "push": ("planner", "ppo", "rma", "student"),
    "flip": ("act", "act-image", "script"),
    "ball": ("lqr", "ilqr", "ilqr-paper"),
}
"""The policies of each, the usual one first."""


def make_task(name: str, robot: Robot, trials: int, seed: int) -> PolicyTask:
    """The task of that name; a robot that it was not made for is refused."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    if robot.name != "panda":
        raise RetorqueError(f"the tasks' poses and tools are the Panda's; robot '{robot.name}' cannot do '{name}'")
    return TASKS[name](robot, trials, seed)


def make_policy(task: PolicyTask, name: str, weights: Path | None = None, seed: int = 0) -> Policy:
    """One of the task's policies, with its own weights or those of a file; `sight.open_eyes` for one that looks."""
    if name not in POLICIES[task.name]:
        raise unknown(f"policy of '{task.name}'", name, POLICIES[task.name])
    if isinstance(task, BoxTask) and name == "student":
        return StudentPush(task.robot, task.goal, load_student(weights or STUDENT, task.robot))
    if isinstance(task, BoxTask) and name != "planner":
        network = load_push_network(weights or (RMA if name == "rma" else PPO), task.robot)
        return NetworkPush(task.robot, task.goal, network, any_yaw=task.any_yaw)
    if isinstance(task, BoxTask):
        model = load_push_model(weights or PUSH_MODEL)
        return PushPlanner(task.robot, task.goal, model, seed=seed, any_yaw=task.any_yaw)
    if name in ("act", "act-image"):
        act = load_act(weights or (FLIP_ACT if name == "act" else BY_PICTURES), task.robot)
        if act.shape.sees != (name == "act-image"):
            other = "act" if name == "act-image" else "act-image"
            raise RetorqueError(f"'{weights}' was made for the policy '{other}', not '{name}'; choose that one")
        return ActPolicy(task.robot, act)
    if weights is not None:
        raise RetorqueError(f"the policy '{name}' has no weights; leave them out")
    if isinstance(task, FlipTask):
        return ScriptedFlip(task.robot)
    assert isinstance(task, BallTask)
    if name != "lqr":
        return PlatePlanner(task.robot, task.goals, AS_PUBLISHED if name == "ilqr-paper" else None)
    return PlateRegulator(task.robot, task.goals)
