"""Equation 9: its value written out, its derivatives by finite differences, angles by the nearest way."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.plan.cost import QuadraticCost
from retorque.robots.robot import Robot
from retorque.tasks.mpc.mpc_task import card
from retorque.work.errors import RetorqueError

CART = card("cartpole")
HORIZON = 6


def symmetric(size: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T


def trajectory(seed: int, scale: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(HORIZON + 1, 4)), rng.normal(size=(HORIZON, 1))


def full_cost(seed: int = 0) -> QuadraticCost:
    rng = np.random.default_rng(seed)
    target = np.array([0.3, 0.1, -0.2, 0.4])
    return QuadraticCost(
        CART, target, running=symmetric(4, rng), final=symmetric(4, rng), effort=symmetric(1, rng) + 0.1
    )


def test_the_value_is_the_sum_written_out() -> None:
    cost = full_cost()
    states, inputs = trajectory(1)
    total = 0.0
    for state, u in zip(states[:-1], inputs, strict=True):
        error = state - cost.target
        total += 0.5 * error @ cost.running @ error + 0.5 * u @ cost.effort @ u
    last = states[-1] - cost.target
    assert cost.ending(states) == pytest.approx(0.5 * last @ cost.final @ last)
    assert cost.value(states, inputs) == pytest.approx(total + cost.ending(states))


@pytest.mark.parametrize("running", [True, False])
def test_the_expansion_is_the_derivative(running: bool) -> None:
    full = full_cost(2)
    weight = full.running if running else 0.0
    cost = QuadraticCost(CART, full.target, running=weight, final=full.final, effort=full.effort)
    states, inputs = trajectory(3)
    found, step = cost.expand(states, inputs), 1e-5
    for place in np.ndindex(states.shape):
        aside = np.zeros_like(states)
        aside[place] = step
        slope = (cost.value(states + aside, inputs) - cost.value(states - aside, inputs)) / (2.0 * step)
        assert found.state_gradient[place] == pytest.approx(slope, abs=1e-6)
    for place in np.ndindex(inputs.shape):
        aside = np.zeros_like(inputs)
        aside[place] = step
        slope = (cost.value(states, inputs + aside) - cost.value(states, inputs - aside)) / (2.0 * step)
        assert found.input_gradient[place] == pytest.approx(slope, abs=1e-6)
    moved = states.copy()
    moved[2] += 0.01
    change = cost.expand(moved, inputs).state_gradient[2] - found.state_gradient[2]
    np.testing.assert_allclose(change, found.state_hessian_at(2) @ np.full(4, 0.01), atol=1e-10)
    np.testing.assert_array_equal(found.state_hessian_at(-1), cost.final)
    np.testing.assert_array_equal(found.input_hessian_at(HORIZON - 1), cost.effort)


def test_a_turn_costs_nothing_where_a_joint_turns_without_end() -> None:
    cost = QuadraticCost(CART, np.zeros(4), running=0.5, final=2.0, effort=1.0)
    np.testing.assert_array_equal(cost.circle, [False, True, False, False])  # the pole, not the cart, no velocity
    states, inputs = trajectory(4)
    turned = states + 2.0 * np.pi * np.array([0.0, 3.0, 0.0, 0.0])
    assert cost.value(turned, inputs) == pytest.approx(cost.value(states, inputs))
    np.testing.assert_allclose(
        cost.expand(turned, inputs).state_gradient, cost.expand(states, inputs).state_gradient, atol=1e-9
    )
    shifted = states + np.array([2.0 * np.pi, 0.0, 0.0, 0.0])
    assert cost.value(shifted, inputs) > cost.value(states, inputs)


def test_the_nearest_way_is_never_longer_than_half_a_turn() -> None:
    cost = QuadraticCost(CART, np.array([0.0, 3.0, 0.0, 0.0]), final=1.0, effort=1.0)
    angles = np.linspace(-20.0, 20.0, 400)
    states = np.zeros((400, 4))
    states[:, 1] = angles
    error = cost.error(states)[:, 1]
    assert np.abs(error).max() <= np.pi + 1e-12
    np.testing.assert_allclose(np.cos(error), np.cos(angles - 3.0), atol=1e-12)
    np.testing.assert_allclose(np.sin(error), np.sin(angles - 3.0), atol=1e-12)


def test_a_user_says_which_joints_are_angles() -> None:
    cost = QuadraticCost(CART, np.zeros(4), final=1.0, effort=1.0, circle=np.array([False, False]))
    assert not cost.circle.any()
    state = np.array([[0.0, 2.0 * np.pi, 0.0, 0.0]])
    assert cost.ending(state) == pytest.approx(0.5 * (2.0 * np.pi) ** 2)


def test_joints_with_limits_are_no_circles() -> None:
    panda = Robot.load("panda")
    assert not QuadraticCost(panda, np.zeros(14), final=1.0, effort=1.0).circle.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": np.full(4, np.nan)}, "4 finite numbers: 2 positions, then 2 velocities"),
        ({"running": -1.0}, "running must be symmetric and positive semidefinite"),
        ({"final": np.array([[1.0, 2.0], [0.0, 1.0]])}, "final must be 4 finite weights"),
        ({"final": np.triu(np.ones((4, 4)))}, "final must be symmetric"),
        ({"effort": np.inf}, "effort must be 1 finite weights"),
        ({"effort": 0.0}, "effort must be symmetric and positive definite"),
    ],
)
def test_what_is_no_cost_is_refused(changes: dict, words: str) -> None:
    given = {"target": np.zeros(4), "running": 0.1, "final": 1.0, "effort": 1.0, **changes}
    target = given.pop("target")
    with pytest.raises(RetorqueError, match=words):
        QuadraticCost(CART, target, **given)


def test_a_robot_that_may_fall_over_is_refused_in_a_sentence() -> None:
    g1 = Robot.load("g1")
    with pytest.raises(RetorqueError, match="'g1' has a free base"):
        QuadraticCost(g1, np.zeros(2 * g1.n), final=1.0, effort=1.0)
