"""Whether positions and velocities agree: clean motions pass, and each lie is found in its joint and made good."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from retorque.loop.guard.motion_check import JudgedMotion, MotionCheck
from retorque.robots.library import names
from retorque.robots.robot import Robot

ARM = Robot.load("panda")
FIXED = tuple(name for name in names() if not Robot.load(name).floating)
JOINT = 2
Fault = Callable[[int, np.ndarray], None]


def motion(robot: Robot, dt: float, ticks: int, speed: float = 0.8, seed: int = 0) -> np.ndarray:
    """(ticks, 3, n) position, velocity and torque of a robot that swings about its home."""
    rng = np.random.default_rng(seed)
    rate, phase = rng.uniform(2.0, 6.0, robot.n), rng.uniform(0.0, 2.0 * np.pi, robot.n)
    angle = rate * dt * np.arange(ticks)[:, None] + phase
    fastest = np.minimum(speed, 0.8 * robot.velocity_limit)
    return np.stack([robot.home + fastest / rate * np.sin(angle), fastest * np.cos(angle), np.sin(angle)], axis=1)


def judge(reports: np.ndarray, robot: Robot = ARM, dt: float = 1e-3, fault: Fault | None = None) -> list[JudgedMotion]:
    """What is made of each report."""
    made = MotionCheck(robot, reports.shape[2:], dt)
    made.reset()
    expected = np.zeros_like(reports[0, :2])
    expected[0] = robot.home
    out = []
    for tick, report in enumerate(reports):
        told = report.copy()
        if fault is not None:
            fault(tick, told)
        out.append(made.take(told, expected, 1, report[2]))
        assert np.all(np.isfinite(expected))
    return out


def only(which: np.ndarray) -> bool:
    """Whether this is said of the faulty joint and no other."""
    return bool(which[JOINT] and not np.delete(which, JOINT).any())


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_clean_motions_of_every_robot_raise_no_suspicion(name: str, dt: float) -> None:
    robot = Robot.load(name)
    reports = motion(robot, dt, 300)
    noise = np.random.default_rng(1).standard_normal(reports.shape) * np.array([1e-4, 5e-3, 0.0])[:, None]
    for judged, report in zip(judge(reports + noise, robot, dt), reports, strict=True):
        assert not judged.suspect.any()
        np.testing.assert_allclose(judged.position, report[0], atol=1e-3)
        np.testing.assert_allclose(judged.velocity, report[1], atol=0.05)


@pytest.mark.parametrize("share", [0.0, 0.5, 2.0, -1.0])
def test_a_velocity_that_is_not_the_rate_of_position_is_rebuilt(share: float) -> None:
    reports = motion(ARM, 1e-3, 1200)

    def lie(tick: int, report: np.ndarray) -> None:
        report[1, JOINT] *= share if tick > 200 else 1.0

    judged = judge(reports, fault=lie)
    found = [k for k, x in enumerate(judged) if x.disagree.any()]
    assert found and all(only(judged[k].disagree) for k in found)
    error = [abs(judged[k].velocity[JOINT] - reports[k, 1, JOINT]) for k in found[20:]]
    assert np.median(error) < 0.1


@pytest.mark.parametrize("jump", [0.1, -0.5, 2.0])
def test_a_slipped_encoder_gets_a_new_zero(jump: float) -> None:
    reports = motion(ARM, 1e-3, 600)

    def slip(tick: int, report: np.ndarray) -> None:
        report[0, JOINT] += jump if tick >= 300 else 0.0

    judged = judge(reports, fault=slip)
    assert only(judged[-1].slipped)
    path = np.array([x.position for x in judged])
    np.testing.assert_allclose(path, reports[:, 0], atol=0.02)  # as if nothing had happened


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e12])
@pytest.mark.parametrize("row", [0, 1])
def test_a_number_that_cannot_be_is_bridged(bad: float, row: int) -> None:
    reports = motion(ARM, 1e-3, 400)

    def lost(tick: int, report: np.ndarray) -> None:
        if 300 <= tick < 310:
            report[row, JOINT] = bad

    judged = judge(reports, fault=lost)
    assert all(only(x.missing) and only(x.suspect) for x in judged[300:310])
    for k in range(300, 310):
        np.testing.assert_allclose(judged[k].position, reports[k, 0], atol=0.01)
    assert not any(x.missing.any() for x in judged[310:])
    assert not judged[-1].suspect.any()


def test_a_position_that_stops_while_its_joint_goes_on_is_dead() -> None:
    reports = motion(ARM, 1e-3, 500)
    held = reports[300, 0, JOINT]

    def stick(tick: int, report: np.ndarray) -> None:
        if tick >= 300:
            report[0, JOINT] = held

    judged = judge(reports, fault=stick)
    assert only(judged[360].dead)
    assert not any(x.dead.any() for x in judged[:300])


def test_a_robot_at_rest_is_not_taken_for_dead() -> None:
    still = np.zeros((400, 3, ARM.n))
    still[:, 0], still[:, 2] = ARM.home, 5.0
    assert not any(x.suspect.any() for x in judge(still))


def test_one_robots_lie_reaches_no_other() -> None:
    reports = np.stack([motion(ARM, 1e-3, 500, seed=seed) for seed in range(3)], axis=2)

    def lie(tick: int, report: np.ndarray) -> None:
        if tick > 200:
            report[:, 1, JOINT] = np.nan if tick % 7 else 3.0

    together, clean = judge(reports, fault=lie), judge(reports)
    for ours, theirs in zip(together, clean, strict=True):
        np.testing.assert_array_equal(ours.position[[0, 2]], theirs.position[[0, 2]])
        np.testing.assert_array_equal(ours.velocity[[0, 2]], theirs.velocity[[0, 2]])
        assert not ours.suspect[[0, 2]].any()
    assert any(x.suspect[1].any() for x in together)


def test_reset_forgets_a_slip() -> None:
    reports = motion(ARM, 1e-3, 200)
    used, fresh = MotionCheck(ARM, (ARM.n,), 1e-3), MotionCheck(ARM, (ARM.n,), 1e-3)
    fresh.reset()
    expected = np.stack([ARM.home, np.zeros(ARM.n)])
    used.reset()
    for tick, report in enumerate(reports):
        used.take(report + (0.4 if tick > 100 else 0.0), expected, 1, report[2])
    assert used.offset.any()
    used.reset()
    ours, theirs = (np.stack([ARM.home, np.zeros(ARM.n)]) for _ in range(2))
    for report in reports:
        a, b = used.take(report, ours, 1, report[2]), fresh.take(report, theirs, 1, report[2])
        np.testing.assert_array_equal(a.position, b.position)
        np.testing.assert_array_equal(a.suspect, b.suspect)


def test_a_velocity_that_leaps_to_a_stop_and_stays_is_a_dead_encoder() -> None:
    reports = motion(ARM, 1e-3, 4000, speed=0.15)
    dies = 2000 + int(np.argmax(np.abs(reports[2000:, 1, JOINT]) > 0.12))
    reports[dies:, 0, JOINT] = reports[dies - 1, 0, JOINT]
    reports[dies:, 1, JOINT] = 0.0
    assert 0.05 < abs(reports[dies - 1, 1, JOINT]) < 0.2  # too little for a jump
    judged = judge(reports)
    assert not any(x.suspect[JOINT] for x in judged[:dies])
    assert only(judged[dies + 1].suspect) and only(judged[dies + 25].dead) and judged[dies + 25].still[JOINT]


def test_a_coarse_velocity_that_flickers_at_rest_is_alive() -> None:
    reports = np.broadcast_to(motion(ARM, 1e-3, 1)[0], (4000, 3, ARM.n)).copy()
    reports[:, 1] = 0.0
    reports[500::500, 1, JOINT] = 0.15  # one count of an encoder, by its difference
    reports[500:, 0, JOINT] += 1.5e-4 * (np.arange(3500) // 500 + 1)
    assert not any(x.dead.any() for x in judge(reports))
