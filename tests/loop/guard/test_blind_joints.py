"""Joints whose encoders are dead are followed by what the others feel, and never by what nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from retorque.loop.guard.blind_joints import BEFORE, LOST, BlindJoints
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

ARM = Robot.load("panda")
BODY = RigidBody(ARM)
PERIOD, TRIALS, JOINT = 0.02, 3, 1
SHAPE = (TRIALS, ARM.n)
UNKNOWN = np.full(ARM.n, 4.0)
NOTHING = np.zeros(SHAPE)


def needed(motion: np.ndarray) -> np.ndarray:
    """What an adapter says that knows its robot."""
    return BODY.inverse_dynamics(*motion)


def blind(*trials: int) -> np.ndarray:
    out = np.zeros(SHAPE, dtype=bool)
    out[list(trials), JOINT] = True
    return out


def learnt(left: float = 0.02, seed: int = 0) -> BlindJoints:
    """A filter that has seen corrections leave so much torque for two seconds."""
    made, rng = BlindJoints(ARM, SHAPE, PERIOD, UNKNOWN), np.random.default_rng(seed)
    for _ in range(100):
        made.note(blind(), left * rng.standard_normal(SHAPE), np.ones(TRIALS, dtype=bool))
    return made


def followed(
    made: BlindJoints, windows: int, off: float, robot: Callable[[np.ndarray], np.ndarray] = needed
) -> np.ndarray:
    """How far a joint of the first robot is mistaken, window by window; it coasts and is off by so much [rad]."""
    rng = np.random.default_rng(1)
    true = np.stack([np.broadcast_to(ARM.home, SHAPE), NOTHING, NOTHING])
    believed = true.copy()
    believed[0, 0, JOINT] += off
    errors = []
    for tick in range(windows):
        true[2] = np.cos(0.3 * tick + np.arange(ARM.n))
        believed[2] = true[2]
        torque = needed(true) + 0.02 * rng.standard_normal(SHAPE)
        wrong = made.window(blind(0), np.full(SHAPE, 0.02), believed, torque, robot)
        assert not wrong[:, 1:].any() and not np.delete(wrong[:, 0], JOINT, axis=1).any()
        believed[:2] += wrong
        for motion in (true, believed):
            motion[0] += PERIOD * motion[1] + 0.5 * PERIOD**2 * motion[2]
            motion[1] += PERIOD * motion[2]
        errors.append(abs(believed[0, 0, JOINT] - true[0, 0, JOINT]))
        made.note(blind(0), NOTHING, np.ones(TRIALS, dtype=bool))
    return np.array(errors)


def test_the_others_tell_where_a_blind_joint_is() -> None:
    errors = followed(learnt(), 40, 0.05)
    assert errors[0] == pytest.approx(0.05, abs=1e-9)  # the window in which it went blind says nothing
    assert errors[-20:].max() < 0.3 * 0.05


def test_an_adapter_that_explains_its_robot_badly_is_told_little() -> None:
    well, badly = followed(learnt(0.02), 10, 0.05), followed(learnt(5.0), 10, 0.05)
    assert well[-1] < 0.3 * 0.05 and badly[-1] > 0.4 * 0.05


def test_what_cannot_be_explained_by_blind_joints_is_doubted() -> None:
    def mistaken(motion: np.ndarray) -> np.ndarray:
        return needed(motion) + np.array([30.0, 0.0, 0.0, -30.0, 0.0, 0.0, 5.0])

    errors = followed(learnt(), 100, 0.0, mistaken)
    assert np.all(errors <= LOST[0])


def test_nothing_is_learnt_from_windows_that_may_have_been_blind() -> None:
    made, twin = learnt(), learnt()
    for _ in range(BEFORE):  # the joint is found to be blind a little later
        made.note(blind(), np.full(SHAPE, 50.0), np.ones(TRIALS, dtype=bool))
    made.note(blind(0, 1, 2), NOTHING, np.ones(TRIALS, dtype=bool))
    np.testing.assert_allclose(followed(made, 5, 0.05), followed(twin, 5, 0.05), rtol=0.3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_what_is_no_torque_moves_nothing(bad: float) -> None:
    made = learnt()
    motion = np.stack([np.broadcast_to(ARM.home, SHAPE), NOTHING, NOTHING])
    with np.errstate(all="ignore"):
        for _ in range(3):
            found = made.window(blind(0), NOTHING, motion, np.full(SHAPE, bad), needed)
            assert np.isfinite(found).all()
            broken = made.window(blind(0), NOTHING, motion, needed(motion), lambda each: np.full(SHAPE, bad))
            assert np.isfinite(broken).all()
    assert followed(made, 40, 0.05)[-20:].max() < 0.3 * 0.05  # and it is found afterwards


def test_reset_forgets() -> None:
    made = learnt(5.0)
    followed(made, 10, 0.05)
    made.reset()
    fresh = BlindJoints(ARM, SHAPE, PERIOD, UNKNOWN)
    np.testing.assert_array_equal(followed(made, 10, 0.05), followed(fresh, 10, 0.05))
