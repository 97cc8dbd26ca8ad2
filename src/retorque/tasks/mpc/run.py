"""One run of a planning task in virtual time, through the one loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from retorque.loop.loop import Loop
from retorque.physics.dynamics import make_dynamics
from retorque.plan.cost import Cost
from retorque.plan.escape import Escape
from retorque.plan.exploration import ConfidenceExploration, InformationExploration
from retorque.plan.feedback import PlanFeedback
from retorque.plan.ilqr import ILQR, PlannerSettings
from retorque.plan.modelling.confidence import Confidence
from retorque.plan.modelling.information import Information
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.oracles import OracleModeller
from retorque.plan.modelling.published_modellers import Naive, Paper, Smooth, Weighted
from retorque.plan.modelling.window_fit import WindowFit
from retorque.plan.mpc_policy import MpcPolicy
from retorque.plan.plan_processes import Parts
from retorque.plan.planner import Planner
from retorque.plan.start_time import StartTime
from retorque.plan.workers import Durations, VirtualWorkers
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.up_osi import UpOsiPolicy, load_up_osi
from retorque.work.array import Array
from retorque.work.errors import unknown

POLICIES = ("information", "paper", "naive", "smooth", "weighted", "oracle", "delayed-oracle")
UP_OSI = "up-osi"
"""The rival without a planner, for some tasks only (`UP_OSI_TASKS`)."""
DELAY = 10
"""Samples by which the delayed oracle is late."""
Noise = Literal["white", "offset"]


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a task is run."""

    policy: str = "information"
    """Way to keep the parameters."""
    noise: Noise = "white"
    """White noise, or one constant offset a run as in the public code."""
    state: Literal["smoothed", "true"] = "smoothed"
    """What planner and feedback see; "true" is the leak of the public code."""
    start_rule: str = "quantile"
    """When plans begin: quantile, paper or fixed."""
    explore: Literal["", "confidence", "information"] = ""
    """What the robot does when nothing is seen of a parameter; none by default."""
    durations: Durations = field(default_factory=Durations)
    """What work takes in virtual time."""
    fixed_lead: float = 0.02
    """Lead of the fixed rule, and of the first plan [s]."""
    go_on: bool = False
    """Whether to go on to the last step after the target was reached."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RunTrace:
    """What happened, one row a step."""

    time: Array
    """(steps,) [s]"""
    states: Array
    """(steps, 2 n) true."""
    estimates: Array
    """(steps, 2 n) what the planner believed."""
    inputs: Array
    """(steps, inputs)"""
    truth: Array
    """(steps, size) true parameters."""
    p: Array
    """(steps, size) believed ones."""
    deviation: Array
    """(steps, size)"""
    confidence: Array
    """(steps,)"""
    exploring: Array
    """(steps,)"""
    changed: Array
    """(steps,) whether the model just found a change."""
    window: Array
    """(steps,) samples that the model rests on."""
    age: Array
    """(steps,) of the plan [s]."""
    reached: float
    """Time at which the target was reached [s]; not a number where it was not."""
    late: int
    """Plans that came too late."""


class NoisyPlant:
    """A simulated robot with the task's noise on states and inputs, and parameters that change.

    Args:
        task: its robot and its schedule.
        noise: white, or one offset.
        seed: of everything.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, task: MpcTask, noise: Noise, seed: int):
        self.task, self._noise = task, noise
        self.truths = task.truths(seed)
        self.timestep = task.timestep
        self.truth: Array = self.truths[0][1]
        self.target = Target(task.robot, task.free.parameters(self.truth), timestep=task.timestep, threads=1)
        n = task.robot.n
        self.target.reset(task.start[:n], task.start[n:])
        self._rng = np.random.default_rng([seed, 11])
        self._offset = task.noise * self._rng.standard_normal(2 * n)
        self._push = task.noise * self._rng.standard_normal(n)
        self._motors = task.robot.torque_limit > 0.0
        self._sent = np.zeros(n)
        self.step = 0

    @property
    def state(self) -> Array:
        """(2 n,) the true state."""
        return np.concatenate([self.target.position, self.target.velocity])

    def read(self) -> State:
        state = self.target.read()
        n = self.task.robot.n
        error = self._offset if self._noise == "offset" else self.task.noise * self._rng.standard_normal(2 * n)
        return State(state.time, state.position + error[:n], state.velocity + error[n:], self._sent)

    def write(self, command: Command) -> None:
        assert command.torque is not None
        for step, truth in self.truths:
            if step == self.step and step > 0:
                self.truth = truth
                self.target.set_parameters(self.task.free.parameters(truth))
        self._sent = command.torque
        push = self._push if self._noise == "offset" else self.task.noise * self._rng.standard_normal(len(self._sent))
        self.target.write(Command(torque=command.torque + np.where(self._motors, push, 0.0)))
        self.step += 1


def make_modeller(task: MpcTask, policy: str, fit: WindowFit, truth: Callable[[], Array]) -> Modeller:
    """A policy by its name."""
    confidence = Confidence(task.free, task.temperature)
    published = {"naive": Naive, "smooth": Smooth, "weighted": Weighted}
    if policy in published:
        return published[policy](task.free, fit, task.samples, confidence)
    if policy == "paper":
        return Paper(
            *(task.free, fit, task.samples, confidence), change=task.change, least=task.least, patience=task.patience
        )
    if policy == "information":
        return Information(task.free, fit)
    if policy in ("oracle", "delayed-oracle"):
        return OracleModeller(task.free, truth, DELAY if policy == "delayed-oracle" else 0)
    raise unknown("policy", policy, POLICIES)


def make_parts(task: MpcTask, settings: RunSettings, truth: Callable[[], Array]) -> tuple[Parts, WindowFit]:
    """Planner, modeller and start rule of a task, and what smooths its windows."""
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    noise = np.full(2 * task.robot.n, task.noise)
    constant = 1.0 if settings.noise == "offset" else 0.0  # which kind it is is known of a sensor, as its size is
    fit = WindowFit(
        *(dynamics, task.free, noise),
        input_noise=task.noise,
        input_offset=constant * task.noise,
        offset=constant * noise,
    )
    ilqr = ILQR(dynamics, PlannerSettings(horizon=task.horizon))
    planner = Planner(ilqr, task.cost, Escape(ilqr, task.cost, task.escape, settings.seed))
    modeller = make_modeller(task, settings.policy, fit, truth)
    rule = StartTime(settings.start_rule, iteration_time=settings.durations.iteration, fixed=settings.fixed_lead)
    return Parts(planner, modeller, rule), fit


def make_policy(
    task: MpcTask, settings: RunSettings, truth: Callable[[], Array]
) -> tuple[MpcPolicy, VirtualWorkers] | tuple[UpOsiPolicy, UpOsiPolicy]:
    """The planner of a task as a policy of the loop, with its workers in virtual time; UP-OSI works alone."""
    if settings.policy == UP_OSI:
        alone = UpOsiPolicy(task, make_dynamics(task.robot, task.timestep), load_up_osi(task))
        return alone, alone
    parts, fit = make_parts(task, settings, truth)
    dynamics = fit.dynamics
    workers = VirtualWorkers(
        parts.planner,
        parts.modeller,
        parts.start_time,
        settings.durations,
        exploration=_exploration(task, settings, fit),
        seed=settings.seed,
    )
    smoothed = 0 if settings.state == "true" else 12
    return MpcPolicy(dynamics, fit, workers, length=max(101, task.samples + 1), smoothed=smoothed), workers


def _exploration(task: MpcTask, settings: RunSettings, fit: WindowFit) -> Callable[[Model], Cost] | None:
    if settings.explore == "confidence":
        confidence = Confidence(task.free, task.temperature)
        return lambda model: ConfidenceExploration(task.cost, confidence, task.timestep)
    if settings.explore == "information":
        prior = np.diag(1.0 / np.square(0.5 * task.free.span))
        return lambda model: InformationExploration(task.cost, fit, prior, model.p)
    return None


def run_task(task: MpcTask, settings: RunSettings, progress: Callable[[int], None] | None = None) -> RunTrace:
    """Run until the target is reached or the steps are over."""
    plant = NoisyPlant(task, settings.noise, settings.seed)
    policy, workers = make_policy(task, settings, lambda: plant.truth)
    loop = Loop(plant, policy, PlanFeedback(task.robot))
    rows: list[tuple[Array | float | bool, ...]] = []
    reached = np.nan
    for step in range(task.steps):
        if settings.state == "true" and step:
            policy.truth = plant.state
        truth = plant.truth
        tick = loop.tick()
        model = workers.model
        assert tick.command.torque is not None
        sent = tick.command.torque[policy.dynamics.actuated]
        rows.append(
            (
                *(plant.state, policy.estimate, sent, truth, model.p, model.deviation),
                *(model.confidence, model.exploring, model.changed, float(model.window), policy.age),
            )
        )
        if progress is not None:
            progress(1)
        if np.isnan(reached) and task.distance(plant.state) < task.tolerance:
            reached = (step + 1) * task.timestep
            if not settings.go_on:
                break
        if plant.target.diverged:
            break
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    names = ("states", "estimates", "inputs", "truth", "p", "deviation")
    more = ("confidence", "exploring", "changed", "window", "age")
    fields = dict(zip((*names, *more), columns, strict=True))
    time = (1 + np.arange(len(rows))) * task.timestep
    return RunTrace(time=time, reached=reached, late=workers.late, **fields)
