"""An iteration of iLQR beside Crocoddyl's on the same problem, and an iteration of identification."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.physics.dynamics import make_dynamics
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import Selection
from retorque.plan.cost import QuadraticCost
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import WindowFit
from retorque.plan.passes import Trajectory, make_passes
from retorque.robots.robot import Link, Robot
from retorque.tasks.mpc.mpc_task import card
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.jobs import JobSettings, run_jobs

FREE = 10
"""Parameters of the identification that is timed."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench mpc-speed`."""

    horizon: int = 100
    """Steps of a plan, and samples of a window."""
    repeats: int = 200
    """Timed iterations of each, by turns."""
    seed: int = 0
    """Of the motion."""
    json: Path | None = None
    """Also write the rows to this file."""


@dataclass(frozen=True)
class Problem:
    """One optimal-control problem, the same for both."""

    robot: Robot
    timestep: float
    start: Array
    target: Array
    running: Array
    final: Array
    effort: float
    inputs: Array
    """(H, n) where the iteration begins."""


@dataclass(frozen=True)
class TimedCall:
    """A call, and what must be done before it outside the clock."""

    run: Callable[[], object]
    prepare: Callable[[], None] = lambda: None


def run(settings: Settings) -> Report:
    """Time both by turns in one process; minima, since a loaded machine only ever adds."""
    check_between("--horizon", settings.horizon, 10, 1000)
    check_between("--repeats", settings.repeats, 1, 100_000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    if settings.cluster:  # times that machine
        return run_jobs(run, [(replace(settings, cluster=""),)], 1, "mpc-speed", 1, settings.cluster)[0]
    compile_with_progress()
    rows: list[Row] = []
    there = find_spec("crocoddyl") is not None
    for name, problem in {"cartpole": _cartpole(settings), "panda": _panda(settings)}.items():
        calls = {"ilqr": _ours(problem)}
        if there:
            calls["crocoddyl"] = _crocoddyl(problem)
        times = _alternating(calls, settings.repeats)
        for method, values in times.items():
            extra = {"minimum": float(values.min()), "median": float(np.median(values))}
            if method == "ilqr" and there:
                extra["ratio"] = float(values.min() / times["crocoddyl"].min())
            rows.append(_row(name, method, "iteration", values, extra))
    values = _alternating({"fit": _identification(settings)}, settings.repeats)["fit"]
    rows.append(_row("panda", "window fit", "iteration", values, {"minimum": float(values.min())}))
    notes = f"mean is the minimum; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; one thread each"
    if not there:
        notes += "; Crocoddyl is not installed (pip install crocoddyl), so its rows are missing"
    return Report(bench="mpc-speed", settings=recorded(settings), rows=rows, notes=notes)


def _row(robot: str, method: str, metric: str, values: Array, extra: dict[str, float]) -> Row:
    least = float(values.min())
    return Row(
        robot=robot,
        method=method,
        metric=metric,
        unit="ms",
        mean=least,
        std=float(np.std(values)),
        ci95=(least, float(np.median(values))),
        trials=len(values),
        extra=extra,
    )


def _alternating(calls: dict[str, TimedCall], repeats: int) -> dict[str, Array]:
    """Duration of each call by turns, (repeats,) [ms], after a warm-up."""
    out = {name: np.empty(repeats) for name in calls}
    for call in calls.values():
        for _ in range(3):
            call.prepare()
            call.run()
    for k in range(repeats):
        for name, call in calls.items():
            call.prepare()
            begin = time.perf_counter_ns()
            call.run()
            out[name][k] = 1e-6 * (time.perf_counter_ns() - begin)
    return out


def _cartpole(settings: Settings) -> Problem:
    """Fully actuated, as Crocoddyl's actuation of one input is Python code there and costs ten times as much."""
    robot = card("cartpole")
    links = tuple(_with_motor(link) for link in robot.links)
    robot = robot.with_links(links)
    rng = np.random.default_rng(settings.seed)
    return Problem(
        robot,
        0.01,
        np.array([0.0, 0.5, 0.0, 0.0]),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.zeros(4),
        np.array([10.0, 50.0, 10.0, 10.0]),
        0.01,
        0.1 * rng.standard_normal((settings.horizon, 2)),
    )


def _with_motor(link: Link) -> Link:
    assert link.joint is not None
    return replace(link, joint=replace(link.joint, torque_limit=1e6))


def _panda(settings: Settings) -> Problem:
    robot = Robot.load("panda")
    gravity = RigidBody(robot).gravity(robot.home)
    return Problem(
        robot,
        0.01,
        np.concatenate([robot.home, np.zeros(robot.n)]),
        np.concatenate([robot.home + 0.3, np.zeros(robot.n)]),
        np.full(2 * robot.n, 0.1),
        np.full(2 * robot.n, 100.0),
        0.01,
        np.tile(gravity, (settings.horizon, 1)),
    )


def _ours(problem: Problem) -> TimedCall:
    """One iteration: expansion, linearisation, backward pass, rollout of the whole step and its cost."""
    dynamics = make_dynamics(problem.robot, problem.timestep, backend="tree")
    cost = QuadraticCost(
        problem.robot, problem.target, running=problem.running, final=problem.final, effort=problem.effort
    )
    passes = make_passes(dynamics, dynamics.input_limit)
    states, inputs = dynamics.rollout(problem.start, problem.inputs), problem.inputs
    gains = np.zeros((*inputs.shape, states.shape[1]))
    now = Trajectory(states, inputs, gains, cost.value(states, inputs))

    def iteration() -> object:
        _, better = passes.iterate(problem.start, cost, now, None, 1e-6)
        assert better is not None
        return better

    return TimedCall(iteration)


def _crocoddyl(problem: Problem) -> TimedCall:
    """One iteration of the same: derivatives, backward pass, rollout of the whole step."""
    import crocoddyl

    model = RigidBody(problem.robot).model
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)

    def action(weights: Array, effort: float, step: float) -> object:
        costs = crocoddyl.CostModelSum(state, actuation.nu)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        residual = crocoddyl.ResidualModelState(state, problem.target, actuation.nu)
        costs.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), 1.0)
        if effort:
            control = crocoddyl.ResidualModelControl(state, actuation.nu)
            costs.addCost("effort", crocoddyl.CostModelResidual(state, control), effort)
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        return crocoddyl.IntegratedActionModelEuler(free, step)

    # Running costs are multiplied by the step there; effort and weights are divided by it to be the same here.
    running = action(problem.running / problem.timestep, problem.effort / problem.timestep, problem.timestep)
    shooting = crocoddyl.ShootingProblem(
        problem.start, [running] * len(problem.inputs), action(problem.final, 0.0, 0.0)
    )
    shooting.nthreads = 1
    solver = crocoddyl.SolverDDP(shooting)
    inputs = list(problem.inputs)
    states = list(shooting.rollout(inputs))
    solver.setCandidate(states, inputs, True)
    shooting.calc(states, inputs)

    solver.solve(states, inputs, 1, True)  # allocates

    def prepare() -> None:  # what an accepted step before leaves behind
        solver.preg = solver.dreg = 1e-6
        solver.setCandidate(states, inputs, True)
        shooting.calc(states, inputs)

    def iteration() -> object:
        shooting.calcDiff(states, inputs)
        solver.backwardPass()
        solver.forwardPass(1.0)
        return None

    return TimedCall(iteration, prepare)


def _identification(settings: Settings) -> TimedCall:
    """One Gauss-Newton iteration: ten parameters of seven joints, the first state unknown too."""
    robot, dt = Robot.load("panda"), 0.01
    selection = Selection(robot, ["damping", "centre link7"], Parameters.ideal(robot))
    guess = selection.to_vector(selection.base)
    free = FreeParameters(selection, lower=guess - 1.0, upper=guess + 1.0, guess=guess)
    assert free.size == FREE
    dynamics = make_dynamics(robot, dt, backend="tree", selection=selection)
    rng = np.random.default_rng(settings.seed)
    inputs = RigidBody(robot).gravity(robot.home) + 2.0 * rng.standard_normal((settings.horizon - 1, robot.n))
    noise = np.full(2 * robot.n, 1e-3)
    states = dynamics.rollout(np.concatenate([robot.home, np.zeros(robot.n)]), inputs, free.whole(guess + 0.01))
    measured = states + noise * rng.standard_normal(states.shape)
    samples = Samples(0.0, len(states) - 1, measured, inputs, np.ones(len(states), dtype=bool))
    fit = WindowFit(dynamics, free, noise)
    prior = np.diag(np.full(free.size, 1.0))
    shift = [0.0]

    def iteration() -> object:
        shift[0] += 1e-9  # other parameters each time, as in a fit
        return fit.iteration(samples, guess + shift[0], prior)

    return TimedCall(iteration)
