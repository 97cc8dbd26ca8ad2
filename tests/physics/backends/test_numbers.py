"""A robot's parameters as plain arrays, and which of them a selection moves."""

from __future__ import annotations

import numpy as np
import pytest
from differences import slope
from dynamics_cases import hidden

from retorque.physics.backends.numbers import Chosen, Numbers
from retorque.physics.dynamics import make_dynamics
from retorque.physics.friction import PRESETS, Friction
from retorque.physics.kinds import KINDS
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("piper")
OF_THE_DRIVE = ("torque_scale", "dead_zone")


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(OF_THE_DRIVE)))
def test_a_free_parameter_moves_the_numbers_that_chosen_says(kind: str) -> None:
    base = hidden(ARM, PRESETS["full"]).with_payload(0.4, np.array([0.01, 0.02, 0.05]), 1e-3 * np.eye(3))
    selection = Selection(ARM, [kind], base)
    at = selection.to_vector(base)
    chosen = Chosen.of(selection, at)

    def flat(vector: np.ndarray) -> np.ndarray:
        numbers = Numbers.of(ARM, selection.apply(vector))
        return np.concatenate([numbers.inertial.ravel(), numbers.joints.ravel()])

    found = slope(flat, at)
    links, width = len(ARM.moving_links), Numbers.of(ARM, base).joints.shape[1]
    want = np.zeros_like(found)
    for (link, column), ten in zip(chosen.links, chosen.tens, strict=True):
        want[10 * link : 10 * link + 10, column] += ten
    for (joint, place, column), weight in zip(chosen.joints, chosen.weights, strict=True):
        want[10 * links + joint * width + place, column] += weight
    np.testing.assert_allclose(want, found, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", OF_THE_DRIVE)
def test_the_drive_is_no_part_of_the_dynamics(kind: str) -> None:
    with pytest.raises(RetorqueError, match="leave it out"):
        Chosen.of(Selection(ARM, [kind]), None)


def test_velocities_of_friction_terms_are_kept_to_the_last_digit() -> None:
    """Compiled and plain dynamics must know the same robot."""
    friction = Friction(stribeck=(0.123456789,), saturating=(1.0 / 3.0, 2.0), asymmetric=True, limit=0.0123456789)
    base = hidden(ARM, friction)
    x = np.concatenate([ARM.home, np.linspace(-0.3, 0.3, ARM.n)])
    u = np.zeros(ARM.n)
    tree, plain = (make_dynamics(ARM, 0.001, backend=b, parameters=base) for b in ("tree", "pinocchio"))
    np.testing.assert_allclose(tree.step(x, u), plain.step(x, u), rtol=0.0, atol=1e-12)


def test_the_same_vector_gives_the_same_robot_however_many_came_between() -> None:
    """More vectors than are kept."""
    base = hidden(ARM)
    selection = Selection(ARM, ["mass", "viscous"], base)
    tree = make_dynamics(ARM, 0.001, backend="tree", selection=selection)
    x, u = np.concatenate([ARM.home, 0.1 * np.ones(ARM.n)]), np.ones(ARM.n)
    at = selection.to_vector(base)
    first = tree.step(x, u, at)
    between = [tree.step(x, u, at + 1e-3 * k) for k in range(1, 50)]
    np.testing.assert_array_equal(tree.step(x, u, at), first)
    np.testing.assert_allclose(tree.step(x, u), first, atol=1e-13)  # the logarithm of a mass and back
    assert len({row.tobytes() for row in between}) == 49


def test_a_vector_that_is_changed_after_the_call_is_a_new_vector() -> None:
    base = hidden(ARM)
    selection = Selection(ARM, ["mass"], base)
    x, u = np.concatenate([ARM.home, np.ones(ARM.n)]), np.ones(ARM.n)
    for backend in ("tree", "pinocchio"):
        dynamics = make_dynamics(ARM, 0.001, backend=backend, selection=selection)
        p = selection.to_vector(base)
        light = dynamics.step(x, u, p)
        p += 0.5
        assert np.max(np.abs(dynamics.step(x, u, p) - light)) > 1e-6
