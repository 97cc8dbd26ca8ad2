"""Joint losses with their derivatives: the arrays against finite differences, the compiled ones against the arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import slope
from dynamics_cases import hidden
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.actuator import PreparedLosses
from retorque.physics.backends.joint_losses import all_losses, by_numbers
from retorque.physics.backends.kernel_cache import load_kernels
from retorque.physics.backends.numbers import Chosen, Numbers
from retorque.physics.friction import PRESETS, Friction
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot

ARM = Robot.load("panda")
KINDS = ("viscous", "friction_amplitude", "friction_slope", "friction_width", "friction_shift", "torque_bias",
         "damping", "coulomb", "stiffness", "rest_position", "armature", "friction")  # fmt: skip


def speeds(friction: Friction, count: int = 60) -> np.ndarray:
    """(count, n) slow and fast velocities, away from the kinks of friction [rad/s]."""
    rng = np.random.default_rng(0)
    v = rng.choice([-1.0, 1.0], (count, ARM.n)) * 10.0 ** rng.uniform(-3.0, 0.7, (count, ARM.n))
    return np.where(np.abs(np.abs(v) - friction.limit) < 1e-4, 2.0 * v, v)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_slope_and_bend_are_the_first_and_second_derivative(name: str) -> None:
    p = hidden(ARM, PRESETS[name])
    v = speeds(p.friction)
    q = np.full_like(v, 0.3)
    _, first, implicit, second = all_losses(q, v, p)
    step = 1e-6
    ahead, behind = all_losses(q, v + step, p), all_losses(q, v - step, p)
    np.testing.assert_allclose(first, (ahead[0] - behind[0]) / (2.0 * step), rtol=1e-5, atol=1e-5)
    same = (ahead[1] > 0.0) == (behind[1] > 0.0)  # not where friction begins to fall with speed
    bend = (ahead[2] - behind[2]) / (2.0 * step)
    np.testing.assert_allclose(second[same], bend[same], rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(implicit, np.maximum(first, 0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_what_each_number_changes_is_what_differences_say(kind: str) -> None:
    p = hidden(ARM, PRESETS["full"])
    selection = Selection(ARM, [kind], p)
    at, h = selection.to_vector(p), 0.004
    p = selection.apply(at)  # a kind that is one number for both directions makes them equal
    v = speeds(p.friction, 20)
    rng = np.random.default_rng(1)
    q, a = rng.normal(size=(2, *v.shape))

    def torque(vector: np.ndarray) -> np.ndarray:
        own = selection.apply(vector)
        lost, _, implicit, _ = all_losses(q, v, own)
        return lost + (implicit * h + own.armature) * a

    found = by_numbers(q, v, a, p, Chosen.of(selection, at), h)
    np.testing.assert_allclose(found, slope(torque, at), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_compiled_losses_are_the_arrays(name: str) -> None:
    kernels = load_kernels("loss_kernels")
    p = hidden(ARM, PRESETS[name])
    numbers = Numbers.of(ARM, p)
    terms, constants = numbers.terms.ravel(), numbers.constants.ravel()
    v = speeds(p.friction, 8)
    q = np.full_like(v, -0.4)
    want = np.stack(all_losses(q, v, p), axis=-1)
    for t, j in np.ndindex(v.shape):
        found = kernels.joint_loss(numbers.joints[j], terms, constants, q[t, j], v[t, j])
        np.testing.assert_allclose(found, want[t, j], rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(v=st.floats(-1e9, 1e9), steep=st.floats(0.0, 1e6), shift=st.floats(-10.0, 10.0))
def test_no_speed_and_no_steepness_makes_friction_overflow(v: float, steep: float, shift: float) -> None:
    p = hidden(ARM, PRESETS["full"])
    p = replace(p, friction_slope=np.full((ARM.n, 2), steep), friction_shift=np.full((ARM.n, 2), shift))
    state = np.full((1, ARM.n), v)
    assert all(np.all(np.isfinite(part)) for part in all_losses(np.zeros_like(state), state, p))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so_and_in_its_joint(bad: float) -> None:
    """A damaged report must not come out as a number that looks right."""
    p = hidden(ARM)
    numbers = Numbers.of(ARM, p)
    v = np.full((1, ARM.n), 0.5)
    v[0, 2] = bad
    lost = all_losses(np.zeros_like(v), v, p)[0][0]
    np.testing.assert_array_equal(np.isfinite(lost), np.arange(ARM.n) != 2)
    terms, constants = numbers.terms.ravel(), numbers.constants.ravel()
    assert not np.isfinite(load_kernels("loss_kernels").joint_loss(numbers.joints[2], terms, constants, 0.0, bad)[0])


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_simulator_and_a_planner_lose_the_same(name: str) -> None:
    p = hidden(ARM, PRESETS[name])
    v = speeds(p.friction, 10)
    q = np.full_like(v, 0.2)
    lost, _, implicit, _ = all_losses(q, v, p)
    there, slopes = PreparedLosses(p)(v, q)
    np.testing.assert_allclose(there, lost, atol=1e-12)
    np.testing.assert_allclose(slopes, implicit, atol=1e-12)


def test_losses_take_power_whichever_way_a_joint_goes() -> None:
    p = replace(hidden(ARM, PRESETS["full"]), torque_bias=np.zeros((ARM.n, 2)), stiffness=np.zeros(ARM.n))
    p = replace(p, friction_coefficients=p.friction_coefficients * p.friction.nonnegative)
    v = speeds(p.friction)
    assert np.all(all_losses(np.zeros_like(v), v, p)[0] * v >= 0.0)


def test_an_ideal_robot_loses_nothing() -> None:
    v = np.random.default_rng(2).normal(size=(5, ARM.n))
    for part in all_losses(v, v, Parameters.ideal(ARM)):
        np.testing.assert_array_equal(part, 0.0)
