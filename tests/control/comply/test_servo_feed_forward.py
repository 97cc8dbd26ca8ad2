"""Targets of soft servos ahead by load and friction: signs, sizes, batches and resets."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.comply.servo_feed_forward import FeedForwardSettings, ServoFeedForward
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors
from retorque.robots.robot import Robot

ROBOT = Robot.load("toddlerbot_2xm")
FRAMES = tuple(ROBOT.frame(name) for name in ROBOT.end_effectors)
MOTORS = JointMotors.of(ROBOT)
STIFFNESS = np.full(ROBOT.n, 12.0)
NOTHING = FeedForwardSettings(friction=0.0, load_time=np.inf)


def tree(q: np.ndarray) -> CompiledTree:
    made = CompiledTree(ROBOT, FRAMES, len(q))
    made.update(q)
    return made


def made(trials: int = 1, settings: FeedForwardSettings | None = None) -> ServoFeedForward:
    used = CompiledTree(ROBOT, FRAMES).on_chain
    return ServoFeedForward(MOTORS, STIFFNESS, used, trials, settings=settings)


@pytest.fixture(scope="module")
def home() -> np.ndarray:
    return ROBOT.home[None].copy()


def test_at_rest_a_target_is_ahead_by_gravity_over_stiffness(home: np.ndarray) -> None:
    """So that a servo that gives way arrives all the same."""
    servo, at = made(settings=NOTHING), tree(home)
    servo.reset(home)
    offset = servo.offsets(at, home, None)[0]
    used = at.on_chain.any(axis=0)
    np.testing.assert_allclose(offset[used], (at.gravity[0] / STIFFNESS)[used], atol=1e-12)
    np.testing.assert_array_equal(offset[~used], 0.0)


def test_a_felt_load_is_taken_over_in_its_time_and_pushed_against(home: np.ndarray) -> None:
    settings = FeedForwardSettings(friction=0.0, load_time=0.2)
    servo, at = made(settings=settings), tree(home)
    servo.reset(home)
    wrench = np.zeros((1, len(FRAMES), 6))
    wrench[0, 0, 2] = -5.0  # pressed down: joints must push up
    start = servo.offsets(at, home, np.zeros_like(wrench)).copy()
    paths = [servo.offsets(at, home, wrench).copy() for _ in range(200)]
    torque = at.jacobian[0, 0].T @ wrench[0, 0]
    np.testing.assert_allclose((paths[-1] - start)[0], -torque / STIFFNESS * at.on_chain[0], atol=1e-6)
    share = np.linalg.norm(paths[9] - start) / np.linalg.norm(paths[-1] - start)
    assert share == pytest.approx(1.0 - 0.9**10, abs=0.02)  # 20 ms of 200 ms each tick


def test_a_site_is_felt_by_its_own_joints_only(home: np.ndarray) -> None:
    servo, at = made(settings=FeedForwardSettings(friction=0.0)), tree(home)
    servo.reset(home)
    rest = servo.offsets(at, home, None).copy()
    wrench = np.zeros((1, len(FRAMES), 6))
    wrench[0, 0, :3] = [3.0, -2.0, 5.0]
    moved = np.abs(servo.offsets(at, home, wrench) - rest)[0] > 1e-9
    assert moved.any() and not np.any(moved & ~at.on_chain[0])


def test_friction_is_fed_forward_along_the_motion_and_not_at_rest(home: np.ndarray) -> None:
    plain, with_friction = made(settings=NOTHING), made(settings=FeedForwardSettings(load_time=np.inf))
    at = tree(home)
    used = at.on_chain.any(axis=0) & (MOTORS.coulomb > 0.0)
    for way in (1.0, -1.0):
        for servo in (plain, with_friction):
            servo.reset(home)
        q = home.copy()
        np.testing.assert_array_equal(with_friction.offsets(at, q, None), plain.offsets(at, q, None))
        for _ in range(60):
            q = q + way * 0.02 * 0.5
            ahead = with_friction.offsets(at, q, None) - plain.offsets(at, q, None)
        assert np.all(way * ahead[0, used] > 0.0)


def test_a_batch_is_each_of_its_robots_and_reset_forgets() -> None:
    rng = np.random.default_rng(0)
    q = ROBOT.home + rng.uniform(-0.1, 0.1, (3, ROBOT.n))
    path = q + 0.01 * np.arange(20)[:, None, None]
    wrench = rng.normal(0.0, 2.0, (3, len(FRAMES), 6))
    together = made(3)

    def run(servo: ServoFeedForward, rows: slice) -> np.ndarray:
        servo.reset(q[rows])
        for step in path:
            out = servo.offsets(tree(step[rows]), step[rows].copy(), wrench[rows].copy())
        return out.copy()

    whole = run(together, slice(0, 3))
    np.testing.assert_array_equal(run(together, slice(0, 3)), whole)
    for k in range(3):
        np.testing.assert_allclose(run(made(), slice(k, k + 1))[0], whole[k], atol=1e-13)


def test_a_stiffer_servo_needs_less(home: np.ndarray) -> None:
    used = CompiledTree(ROBOT, FRAMES).on_chain
    at = tree(home)
    soft, stiff = (ServoFeedForward(MOTORS, k * STIFFNESS, used, settings=NOTHING) for k in (1.0, 4.0))
    for servo in (soft, stiff):
        servo.reset(home)
    np.testing.assert_allclose(soft.offsets(at, home, None), 4.0 * stiff.offsets(at, home, None), atol=1e-12)
