"""The compiled passes of iLQR against the same in NumPy: limits that hold, damping, costs that change with time."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.dynamics import make_dynamics
from retorque.plan.cost import Cost, Expansion, QuadraticCost
from retorque.plan.passes import ArrayPasses, CompiledPasses, Trajectory
from retorque.robots.robot import Robot
from retorque.tasks.mpc.mpc_task import card

STEPS = 12


class Whole:
    """A quadratic cost behind the interface that any cost has: nothing of it is known to be constant."""

    def __init__(self, cost: QuadraticCost):
        self.cost = cost
        self.value, self.ending = cost.value, cost.ending

    def expand(self, states, inputs) -> Expansion:
        found = self.cost.expand(states, inputs)
        running = np.repeat(found.state_hessian[:1], len(inputs), axis=0)
        return Expansion(
            found.state_gradient,
            np.concatenate([running, found.state_hessian[1:]]),
            found.input_gradient,
            np.repeat(found.input_hessian, len(inputs), axis=0),
        )


@pytest.fixture(scope="module", params=["panda", "cartpole", "leap_hand", "xmate3_three_joints"])
def problem(request):
    robot = Robot.load(request.param) if request.param in ("panda", "leap_hand") else card(request.param)
    finger = robot.name == "leap_hand"  # light links: short steps and small torques
    dynamics = make_dynamics(robot, 0.001 if finger else 0.01, backend="tree")
    rng = np.random.default_rng(3)
    home = np.concatenate([robot.home, np.zeros(robot.n)])
    goal = home + np.concatenate([rng.uniform(-0.5, 0.5, robot.n), np.zeros(robot.n)])
    cost = QuadraticCost(robot, goal, running=0.1, final=100.0, effort=1e-3)
    most = (0.01 if finger else 0.2) * dynamics.input_limit
    inputs = most * rng.uniform(-1.0, 1.0, (STEPS, dynamics.inputs))
    states = dynamics.rollout(home, inputs)
    return dynamics, cost, home, Trajectory(states, inputs, np.zeros((0, 0, 0)), cost.value(states, inputs))


@pytest.mark.parametrize("damping", [1e-6, 0.3])
@pytest.mark.parametrize("tight", [False, True])
def test_the_backward_pass_within_limits(problem, damping: float, tight: bool) -> None:
    dynamics, cost, _, now = problem
    limit = 0.7 * np.max(np.abs(now.inputs), axis=0) if tight else dynamics.input_limit
    warm = np.zeros_like(now.inputs)
    costs = cost.expand(now.states, now.inputs)
    ours, theirs = (
        kind(dynamics, limit).backward(now.states, now.inputs, costs, None, damping, warm)
        for kind in (CompiledPasses, ArrayPasses)
    )
    assert ours is not None and theirs is not None
    if tight:
        assert np.any(np.isclose(np.abs(now.inputs + theirs.change), limit))
    for a, b in ((ours.change, theirs.change), (ours.gains, theirs.gains)):
        np.testing.assert_allclose(a, b, atol=1e-7 * (1e-12 + np.max(np.abs(b))))
    np.testing.assert_allclose(ours.expected, theirs.expected, rtol=1e-8)


def test_an_iteration_in_one_call_is_the_same_as_in_many(problem) -> None:
    dynamics, cost, home, now = problem
    passes = CompiledPasses(dynamics, dynamics.input_limit)
    found = []
    whole: Cost = Whole(cost)
    for each in (cost, whole):
        step, better = passes.iterate(home, each, now, None, 1e-6)
        assert step is not None and better is not None
        found.append((step.gains, *better))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert found[0][-1] < now.cost


def test_an_expansion_without_a_minimum_is_answered_so() -> None:
    robot = card("cartpole")
    dynamics = make_dynamics(robot, 0.01, backend="tree")
    cost = QuadraticCost(robot, np.zeros(4), final=1.0, effort=1.0)
    cost.effort = -np.eye(1)
    states, inputs = np.zeros((STEPS + 1, 4)), np.zeros((STEPS, 1))
    now = Trajectory(states, inputs, np.zeros((0, 0, 0)), 1.0)
    assert CompiledPasses(dynamics, dynamics.input_limit).iterate(states[0], cost, now, None, 1e-6) == (None, None)


def test_many_rollouts_at_once_are_the_same_as_one_by_one(problem) -> None:
    dynamics, _, home, _ = problem
    rng = np.random.default_rng(4)
    inputs = rng.uniform(-1.5, 1.5, (11, STEPS, dynamics.inputs)) * dynamics.input_limit
    compiled, plain = CompiledPasses(dynamics, dynamics.input_limit), ArrayPasses(dynamics, dynamics.input_limit)
    np.testing.assert_allclose(compiled.rollouts(home, inputs, None), plain.rollouts(home, inputs, None), atol=1e-8)
    still = np.zeros((1, 3, dynamics.inputs))
    fast = home.copy()
    fast[dynamics.nv :] = 1e4
    assert np.isnan(compiled.rollouts(fast, still, None)[0]).all()
