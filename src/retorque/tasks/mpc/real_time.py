"""A planning task in real time: the loop in this process, planner and modeller in two others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from retorque.loop.health import Health
from retorque.loop.loop import Loop
from retorque.plan.feedback import PlanFeedback
from retorque.plan.mpc_policy import MpcPolicy
from retorque.plan.plan_processes import Parts, ProcessWorkers
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.run import NoisyPlant, RunSettings, make_parts
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

LATE = 0.5
"""Share of a period by which a tick may be late before it counts as missed."""


@dataclass(frozen=True, kw_only=True)
class RealTimeTrace:
    """What happened in a run in real time."""

    ticks: int
    missed: int
    """Ticks that began later than half a period."""
    starved: int
    """Ticks without a plan to follow, after the first plan."""
    plans: int
    models: int
    restarts: dict[str, int]
    age: Array
    """(ticks,) of the plan in force [s]."""
    gaps: list[float]
    """From each kill to the next plan or model of the worker that was killed [s]."""
    largest: float
    """Largest input, as a share of its limit."""
    reached: float
    """Time at which the target was reached [s]; not a number where it was not."""


def parts_of(name: str, variant: str, settings: RunSettings) -> Parts:
    """Made in each process by itself."""
    if "oracle" in settings.policy:
        raise RetorqueError("an oracle is told the truth, which other processes do not have; choose another policy")
    return make_parts(make_task(name, variant), settings, lambda: np.zeros(0))[0]


def run_real_time(
    name: str,
    settings: RunSettings,
    duration: float,
    *,
    variant: str = "paper",
    kill: Callable[[int], str] = lambda tick: "",
) -> RealTimeTrace:
    """Run a task for so many seconds; `kill` may name a worker to be killed before a tick."""
    task = make_task(name, variant)
    make = partial(parts_of, name, variant, settings)
    parts, fit = make_parts(task, settings, lambda: np.zeros(0))
    plant = NoisyPlant(task, settings.noise, settings.seed)
    limit = task.robot.torque_limit[task.robot.torque_limit > 0.0]
    ages, gaps, largest, missed, starved, reached = [], [], 0.0, 0, 0, np.nan
    with ProcessWorkers(make, parts) as workers:
        if not workers.ready():
            raise RetorqueError("the planning processes did not start; look whether the machine is overloaded")
        policy = MpcPolicy(fit.dynamics, fit, workers)
        loop = Loop(plant, policy, PlanFeedback(task.robot))
        waiting: tuple[str, float, int] | None = None
        due = time.monotonic()
        for tick in range(round(duration / task.timestep)):
            victim = kill(tick)
            if victim:
                os.kill(workers.pid(victim), signal.SIGKILL)
                waiting = (victim, time.monotonic(), _made(workers, victim))
            due += task.timestep
            done = loop.tick()
            assert done.command.torque is not None
            sent = done.command.torque[fit.dynamics.actuated]
            largest = max(largest, float(np.max(np.abs(sent) / limit)))
            if policy.health & Health.STALE and workers.counts.plans:
                starved += 1
            ages.append(policy.age)
            if waiting is not None and _made(workers, waiting[0]) > waiting[2]:
                gaps.append(time.monotonic() - waiting[1])
                waiting = None
            if np.isnan(reached) and task.distance(plant.state) < task.tolerance:
                reached = (tick + 1) * task.timestep
            left = due - time.monotonic()
            if left > 0.0:
                time.sleep(left)
            elif -left > LATE * task.timestep:
                missed += 1
                due = time.monotonic()
        counts = workers.counts
        return RealTimeTrace(
            ticks=len(ages),
            missed=missed,
            starved=starved,
            plans=counts.plans,
            models=counts.models,
            restarts=dict(counts.restarts),
            age=np.array(ages),
            gaps=gaps,
            largest=largest,
            reached=reached,
        )


def _made(workers: ProcessWorkers, role: str) -> int:
    return workers.counts.plans if role == "planner" else workers.counts.models
