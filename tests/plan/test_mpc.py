"""The planner in the loop: repeatable to the bit, safe under faults, late plans, exploration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.loop.health import Health
from retorque.plan.escape import EscapeSettings
from retorque.plan.exploration import ConfidenceExploration, InformationExploration
from retorque.plan.feedback import PlanAction, PlanFeedback
from retorque.plan.modelling.confidence import Confidence
from retorque.plan.modelling.window_fit import WindowFit
from retorque.plan.mpc_policy import MpcPolicy
from retorque.plan.start_time import StartTime
from retorque.plan.workers import Durations
from retorque.robots.state import State
from retorque.tasks.mpc.mpc_library import TASKS, make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.run import RunSettings, make_policy, run_task
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def short(name: str = "cartpole", steps: int = 40) -> MpcTask:
    task = make_task(name)
    return replace(task, steps=steps, escape=EscapeSettings(duration=2.0, samples=8, generations=2, iterations=3))


def test_a_run_repeats_to_the_bit() -> None:
    how = RunSettings(policy="information", seed=1000, durations=Durations(jitter=0.3))
    first, second = (run_task(short(), how) for _ in range(2))
    for name in ("states", "estimates", "inputs", "p", "age"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    other = run_task(short(), replace(how, seed=1001))
    assert not np.array_equal(first.states, other.states)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "cartpole"])
def test_every_task_runs_within_its_limits(name: str) -> None:
    task = short(name, 12)
    trace = run_task(task, RunSettings(policy="paper", noise="offset", explore="confidence", seed=1000))
    limit = task.robot.torque_limit[task.robot.torque_limit > 0.0]
    assert np.all(np.isfinite(trace.states)) and np.all(np.abs(trace.inputs) <= limit)
    assert len(trace.time) == 12 and make_task(name, "code").horizon > 0


def test_the_leak_of_the_public_code_is_there_and_makes_estimates_exact() -> None:
    trace = run_task(short(steps=10), RunSettings(policy="oracle", state="true", seed=1000))
    np.testing.assert_array_equal(trace.estimates[2:], trace.states[1:-1])
    fair = run_task(short(steps=10), RunSettings(policy="oracle", seed=1000))
    assert np.max(np.abs(fair.estimates[2:] - fair.states[1:-1])) > 1e-4


def test_a_constant_error_of_the_sensors_is_taken_out_of_the_state() -> None:
    told = run_task(short("arm-centre", 70), RunSettings(noise="offset", seed=1000))
    blind = run_task(short("arm-centre", 70), RunSettings(policy="oracle", noise="offset", seed=1000))
    errors = [np.mean(np.abs(run.estimates[50:] - run.states[49:-1])) for run in (told, blind)]
    assert errors[0] < 0.7 * errors[1], errors


def report(state: Array, time: float, torque: Array) -> State:
    return State(time, state[:2].copy(), state[2:].copy(), torque)


@settings(max_examples=12, deadline=None)
@given(faults=st.lists(st.sampled_from(["ok", "nan", "inf", "back", "gap", "jump", "torque"]), min_size=8, max_size=14))
def test_no_fault_brings_an_action_out_of_limits(policy: MpcPolicy, faults: list[str]) -> None:
    x, torque, time = np.array([0.0, 3.0, 0.0, 0.0]), np.zeros(2), 0.0
    controller = PlanFeedback(policy.dynamics.robot)
    policy.reset(report(x, 0.0, torque))
    for fault in faults:
        seen, stamp, sent = x.copy(), time, torque.copy()
        if fault in ("nan", "inf"):
            seen[1] = float(fault)
        elif fault == "jump":
            seen = seen + 1e4
        elif fault == "torque":
            sent[0] = np.nan
        elif fault == "back":
            stamp = time - 0.5
        elif fault == "gap":
            stamp = time = time + 3.0
        state = report(seen, stamp, sent)
        command = controller.command(state, policy.act(state)).torque
        assert command is not None and np.all(np.isfinite(command))
        assert np.all(np.abs(command) <= policy.dynamics.robot.torque_limit)
        if fault in ("nan", "inf"):
            assert policy.health & Health.BAD_STATE
        torque = command
        time += policy.dynamics.timestep


@pytest.fixture(scope="module")
def policy() -> MpcPolicy:
    return make_policy(short(), RunSettings(policy="information"), lambda: np.ones(2))[0]


def test_feedback_that_is_no_number_leaves_the_planned_input() -> None:
    task = short()
    action = PlanAction(np.array([5.0]), np.full((1, 4), np.nan), np.zeros(4), np.ones(4))
    command = PlanFeedback(task.robot).command(report(np.zeros(4), 0.0, np.zeros(2)), action)
    np.testing.assert_array_equal(command.torque, [5.0, 0.0])
    wild = replace_gain(action, 1e6)
    np.testing.assert_array_equal(
        PlanFeedback(task.robot).command(report(np.zeros(4), 0.0, np.zeros(2)), wild).torque, [20.0, 0.0]
    )


def replace_gain(action: PlanAction, gain: float) -> PlanAction:
    return PlanAction(action.input, np.full((1, 4), gain), action.planned, action.estimate)


def test_the_start_of_plans_follows_its_rule() -> None:
    adaptive = StartTime("quantile", iteration_time=0.01, fixed=0.05, share=0.9)
    paper, fixed = (StartTime(rule, iteration_time=0.01, fixed=0.05) for rule in ("paper", "fixed"))
    for rule in (adaptive, paper, fixed):
        assert rule.lead() == 0.05
        for k in range(10):
            rule.solved(0.01 * (k + 1), 3)
    assert adaptive.lead() == pytest.approx(0.091) and paper.lead() == pytest.approx(0.03) and fixed.lead() == 0.05
    with pytest.raises(RetorqueError, match="quantile"):
        StartTime("quantil", iteration_time=0.01, fixed=0.05)


def test_slow_solves_come_late_where_the_lead_is_too_short() -> None:
    slow = Durations(iteration=0.03)
    hasty = run_task(short(steps=60), RunSettings(policy="oracle", start_rule="fixed", fixed_lead=0.01, durations=slow))
    patient = run_task(short(steps=60), RunSettings(policy="oracle", start_rule="quantile", durations=slow))
    assert hasty.late > patient.late


def test_gradients_of_exploration_are_those_of_finite_differences() -> None:
    task = make_task("rod")
    policy, _ = make_policy(short("rod"), RunSettings(policy="information"), lambda: np.ones(3))
    fit = policy.fit
    assert isinstance(fit, WindowFit)
    rng = np.random.default_rng(0)
    states, inputs = rng.standard_normal((5, 8)), rng.standard_normal((4, 1))
    prior = np.diag(1.0 / np.square(0.5 * task.free.span))
    for cost in (
        ConfidenceExploration(task.cost, Confidence(task.free, 1.0), 0.01),
        InformationExploration(task.cost, fit, prior, task.free.guess),
    ):
        found = cost.expand(states, inputs).state_gradient
        for t, i in ((0, 1), (2, 3), (3, 6), (4, 0), (2, 0)):
            step = np.zeros_like(states)
            step[t, i] = 1e-6
            slope = (cost.value(states + step, inputs) - cost.value(states - step, inputs)) / 2e-6
            assert found[t, i] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_a_smoothed_window_longer_than_the_buffer_is_refused(policy: MpcPolicy) -> None:
    with pytest.raises(RetorqueError, match="longer than the buffer"):
        MpcPolicy(policy.dynamics, policy.fit, policy.workers, length=10, smoothed=20)
    with pytest.raises(RetorqueError, match="did you mean 'cartpole'"):
        make_task("cartpol")
    with pytest.raises(RetorqueError, match="variant"):
        make_task("cartpole", "papers")
