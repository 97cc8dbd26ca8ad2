"""Hybrid force-velocity servoing on a problem whose answer is known, and equation 13."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.comply.hybrid_servoing import hybrid_servo, motion_stiffness
from retorque.work.errors import RetorqueError


def _block() -> dict:
    """A block on a floor, dragged by a finger that sticks to its top: v = (block x, block z, finger x, finger z)."""
    stick = np.array([[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
    floor = np.array([[0.0, 1.0, 0.0, 0.0]])
    return {
        "jacobian": np.concatenate([stick, floor]),
        "goal": np.array([[1.0, 0.0, 0.0, 0.0]]),
        "target": np.array([0.1]),
        "free": 2,
        "normals": np.array([1]),
        "least": np.array([-3.0]),  # the finger presses the block down with 3 N
        "external": np.array([0.0, -2.0, 0.0, 0.0]),
    }


def test_a_block_is_dragged_by_velocity_and_pressed_by_force() -> None:
    action = hybrid_servo(**_block())
    assert action.forces == 1
    np.testing.assert_allclose(action.velocity, [0.1, 0.0], atol=1e-9)
    np.testing.assert_allclose(np.abs(action.transform[0]), [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(action.force, [0.0, -3.0], atol=1e-6)
    np.testing.assert_allclose(action.transform @ action.transform.T, np.eye(2), atol=1e-12)


def test_goals_against_the_contacts_are_refused() -> None:
    problem = _block()
    problem["goal"], problem["target"] = np.array([[0.0, 1.0, 0.0, 0.0]]), np.array([0.1])  # through the floor
    with pytest.raises(RetorqueError, match="contradicts the contacts"):
        hybrid_servo(**problem)
    problem["jacobian"] = np.full((3, 4), np.nan)
    with pytest.raises(RetorqueError, match="finite"):
        hybrid_servo(**problem)


def test_stiff_along_the_motion_and_soft_across() -> None:
    v = np.array([0.3, -0.4, 0.0])
    stiffness = motion_stiffness(v, 100.0, 400.0)
    np.testing.assert_allclose(stiffness @ v, 400.0 * v)
    np.testing.assert_allclose(stiffness @ [0.4, 0.3, 0.0], [40.0, 30.0, 0.0])
    np.testing.assert_allclose(motion_stiffness(np.zeros((2, 3)), 100.0, 400.0), 100.0 * np.tile(np.eye(3), (2, 1, 1)))
