"""iLQR against the Riccati equation, its two kinds of passes against each other, limits, deadlines, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from retorque.physics.dynamics import make_dynamics
from retorque.plan.cost import QuadraticCost
from retorque.plan.escape import Escape, EscapeSettings, emphasised
from retorque.plan.ilqr import ILQR, PlannerSettings
from retorque.plan.passes import ArrayPasses, CompiledPasses, box_minimum
from retorque.plan.plan import Plan
from retorque.plan.planner import Planner
from retorque.robots.robot import Robot
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask, card
from retorque.work.errors import RetorqueError


@pytest.fixture(scope="module")
def task() -> MpcTask:
    return make_task("cartpole")


@pytest.fixture(scope="module")
def ilqr(task: MpcTask) -> ILQR:
    dynamics = make_dynamics(task.robot, task.timestep, backend="tree", selection=task.free.selection)
    return ILQR(dynamics, PlannerSettings(horizon=100))


def cart() -> Robot:
    """A cart alone: a linear system."""
    robot = card("cartpole")
    frame = replace(robot.end_effector, link="cart")
    return replace(robot, links=robot.links[:1], home=np.zeros(1), end_effector=frame, payload_mount=frame)


def test_a_linear_robot_is_solved_by_one_iteration_as_by_the_riccati_equation() -> None:
    robot = cart()
    dynamics = make_dynamics(robot, 0.05, backend="tree")
    final, effort, steps = np.array([30.0, 3.0]), 0.02, 20
    cost = QuadraticCost(robot, np.zeros(2), running=np.array([1.0, 0.1]), final=final, effort=effort)
    a, b, _ = (part[0] for part in dynamics.linearise(np.zeros((1, 2)), np.zeros((1, 1))))
    value, gains = np.diag(final), []
    for _ in range(steps):
        gain = -np.linalg.solve(effort * np.eye(1) + b.T @ value @ b, b.T @ value @ a)
        value = np.diag([1.0, 0.1]) + a.T @ value @ (a + b @ gain)
        gains.append(gain)
    found = ILQR(dynamics).solve(np.array([0.1, 0.0]), cost, np.zeros((steps, 1)), iterations=2)
    assert found is not None
    np.testing.assert_allclose(found.gains, gains[::-1], rtol=1e-4)
    np.testing.assert_allclose(found.cost, 0.5 * 0.1 * value[0, 0] * 0.1, rtol=1e-4)


@pytest.mark.parametrize("name", ["panda", "cartpole"])
def test_compiled_and_array_passes_agree(name: str) -> None:
    robot = Robot.load("panda") if name == "panda" else card("cartpole")
    tree, reference = (make_dynamics(robot, 0.01, backend=b) for b in ("tree", "pinocchio"))
    goal = np.concatenate([robot.home + 0.3, np.zeros(robot.n)])
    cost = QuadraticCost(robot, goal, running=0.1, final=100.0, effort=0.01)
    start = np.concatenate([robot.home, np.zeros(robot.n)])
    guess = np.tile(tree.body.gravity(robot.home)[tree.actuated], (15, 1))
    ours, theirs = (ILQR(d).solve(start, cost, guess, iterations=2) for d in (tree, reference))
    assert ours is not None and theirs is not None
    np.testing.assert_allclose(ours.states, theirs.states, atol=1e-9)
    np.testing.assert_allclose(ours.gains, theirs.gains, atol=1e-8 * np.max(np.abs(theirs.gains)))
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-10)
    assert isinstance(ILQR(tree)._passes, CompiledPasses) and isinstance(ILQR(reference)._passes, ArrayPasses)


def test_limits_hold_and_the_cost_falls(task: MpcTask, ilqr: ILQR) -> None:
    p = task.free.whole(np.array([1.0, 0.5]))
    guess = 15.0 * np.sin(np.linspace(0.0, 9.0, 100))[:, None]
    cheap = emphasised(task.cost, 50.0)
    costs = [ilqr.solve(task.start, cheap, guess, p=p, iterations=k) for k in (0, 1, 5, 40)]
    values = [found.cost for found in costs if found is not None]
    assert len(values) == 4 and values == sorted(values, reverse=True) and values[-1] < 0.7 * values[0]
    last = costs[-1]
    assert last is not None and np.max(np.abs(last.inputs)) <= 20.0
    at = np.abs(np.abs(last.inputs[:, 0]) - 20.0) < 1e-12
    silent = ~last.gains[at].any(axis=(1, 2))  # an input that the backward pass holds at its limit does not answer
    assert at.any() and np.mean(silent) > 0.7


@pytest.mark.parametrize("seed", range(5))
def test_a_box_is_minimised_as_by_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    hessian, gradient = root @ root.T + 0.1 * np.eye(4), 3.0 * rng.standard_normal(4)
    low, high = -rng.uniform(0.1, 1.0, 4), rng.uniform(0.1, 1.0, 4)
    found = box_minimum(hessian, gradient, low, high, np.zeros(4))
    assert found is not None
    best = minimize(
        lambda x: 0.5 * x @ hessian @ x + gradient @ x,
        np.zeros(4),
        jac=lambda x: hessian @ x + gradient,
        bounds=list(zip(low, high, strict=True)),
        options={"ftol": 1e-14, "gtol": 1e-10},
    )
    np.testing.assert_allclose(found[0], best.x, atol=1e-5)
    assert box_minimum(-hessian, gradient, low, high, np.zeros(4)) is None


def test_the_best_plan_so_far_is_there_when_the_time_is_up(task: MpcTask, ilqr: ILQR) -> None:
    calls = iter([False, False, True])
    found = ilqr.solve(task.start, task.cost, np.ones((100, 1)), iterations=50, over=lambda: next(calls))
    assert found is not None and found.iterations == 2 and np.all(np.isfinite(found.states))


def test_a_plan_shifts_in_time() -> None:
    rows = np.arange(5.0)
    plan = Plan(1.0, 0.1, np.arange(6.0)[:, None] * np.ones(2), rows[:, None], np.ones((5, 1, 2)), 0.0)
    states, inputs, gains = plan.shifted(1.2, 5)
    np.testing.assert_array_equal(inputs[:, 0], [2.0, 3.0, 4.0, 0.0, 0.0])
    np.testing.assert_array_equal(states[:, 0], [2.0, 3.0, 4.0, 5.0, 5.0, 5.0])
    assert gains.shape == (5, 1, 2) and plan.end == pytest.approx(1.5)
    assert [plan.index(t) for t in (0.0, 1.0, 1.11, 1.4999, 9.0)] == [0, 0, 1, 4, 4]


def test_angles_take_the_nearest_way(task: MpcTask) -> None:
    error = task.cost.error(np.array([1.0, 2.0 * np.pi + 0.1, 0.0, 0.0]))
    np.testing.assert_allclose(error, [0.0, 0.1, 0.0, 0.0], atol=1e-12)
    both = [
        task.cost.expand(np.tile(x, (3, 1)), np.zeros((2, 1))) for x in ([1.0, 0.1, 0, 0], [1.0, 0.1 - 2 * np.pi, 0, 0])
    ]
    np.testing.assert_allclose(both[0].state_gradient, both[1].state_gradient, atol=1e-9)


def test_a_search_swings_up_what_plain_ilqr_leaves_hanging(task: MpcTask, ilqr: ILQR) -> None:
    p = task.free.whole(np.array([1.4, 1.4]))
    plain = ilqr.solve(task.start, task.cost, np.zeros((100, 1)), p=p, iterations=60)
    assert plain is not None
    escape = Escape(ilqr, task.cost, EscapeSettings(duration=4.0, samples=64, generations=8), seed=1000)
    planner = Planner(ilqr, task.cost, escape)
    hanging = ilqr.plan(plain, 0.0, 1, 0)
    found = planner.search(task.start, 0.0, p)
    assert found is not None and not planner.arrives(hanging) and planner.arrives(found)
    assert planner.better(found, hanging) and not planner.better(hanging, found)
    again = planner.replan(found, found.states[3], 0.03, p)
    assert again is not None and again.horizon == found.horizon - 3 and planner.arrives(again)


def test_a_plan_that_ends_a_little_off_is_brought_nearer_and_not_let_go() -> None:
    arm = make_task("arm-inertia")
    ilqr = ILQR(make_dynamics(arm.robot, arm.timestep, selection=arm.free.selection), PlannerSettings(horizon=100))
    believed, found = (arm.free.whole(p) for p in (arm.free.guess, arm.free.lower + np.array([0.14, 0.067])))
    ends = []
    for reach in (0.1, EscapeSettings().reach):
        escape = Escape(ilqr, arm.cost, EscapeSettings(reach=reach))
        first = ilqr.solve(arm.start, escape.emphasised, np.zeros((200, 3)), p=believed, iterations=40)
        assert first is not None
        plan = ilqr.plan(first, 0.0, 0, 0)
        for _ in range(5):
            again = Planner(ilqr, arm.cost, escape).replan(plan, arm.start, 0.0, found)
            assert again is not None
            plan = again
        ends.append(arm.distance(plan.states[-1]))
    assert ends[1] < 1.0 < ends[0]


def test_what_cannot_be_planned_is_refused(task: MpcTask) -> None:
    robot = task.robot
    endless = robot.with_links(tuple(replace(x, joint=replace(x.joint, torque_limit=np.inf)) for x in robot.links))
    with pytest.raises(RetorqueError, match="limit on every input"):
        ILQR(make_dynamics(endless, 0.01, backend="pinocchio"))
    with pytest.raises(RetorqueError, match="free base"):
        ILQR(make_dynamics(Robot.load("toddlerbot"), 0.01, backend="pinocchio"))
    with pytest.raises(RetorqueError, match="positive semidefinite"):
        QuadraticCost(robot, np.zeros(4), final=np.array([-1.0, 0.0, 0.0, 0.0]), effort=1.0)
    with pytest.raises(RetorqueError, match="positive definite"):
        QuadraticCost(robot, np.zeros(4), final=1.0, effort=0.0)
    with pytest.raises(RetorqueError, match="4 finite numbers"):
        QuadraticCost(robot, np.zeros(3), final=1.0, effort=1.0)
    with pytest.raises(RetorqueError, match="4 finite weights"):
        QuadraticCost(robot, np.zeros(4), final=np.ones(3), effort=1.0)
    with pytest.raises(RetorqueError, match="between 1 and 10000 steps"):
        PlannerSettings(horizon=0)
