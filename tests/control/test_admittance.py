"""The virtual masses: equation 1, its limits, its tank and its watchdog."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, sqrtm
from scipy.spatial.transform import Rotation

from retorque.control.comply.admittance import Admittance, AdmittanceSettings
from retorque.control.comply.compliance_action import ComplianceAction, along, critical_damping, isotropic
from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.rotation_steps import rotate_by, rotation_between
from retorque.work.errors import RetorqueError

HERE, STILL = np.zeros((1, 1, 3)), np.eye(3)[None, None]


def _action(**changes: object) -> ComplianceAction:
    parts: dict = {"position": HERE, "rotation": STILL, "stiffness": isotropic(100.0, 10.0), **changes}
    return ComplianceAction(**parts)


def _run(made: Admittance, action: ComplianceAction, external: np.ndarray, ticks: int, start: float = 0.0) -> None:
    for tick in range(ticks):
        made.step(action, np.broadcast_to(external, (made.trials, made.sites, 6)).copy(), start + tick * made.timestep)


def test_a_constant_force_gives_way_by_force_over_stiffness() -> None:
    made = Admittance(1)
    made.reset(HERE, STILL)
    stiffness = along(np.array([1.0, 0.0, 0.0]), 80.0, 400.0, 40.0)
    push = np.array([4.0, 2.0, 0.0, 0.0, 0.0, 0.8])
    _run(made, _action(stiffness=stiffness), push, 500)
    np.testing.assert_allclose(made.position[0, 0], [0.05, 0.005, 0.0], atol=1e-4)
    turned = Rotation.from_matrix(made.rotation[0, 0]).as_rotvec()
    np.testing.assert_allclose(turned, [0.0, 0.0, 0.02], atol=1e-4)


def test_small_steps_follow_the_exact_solution_and_do_not_overshoot() -> None:
    stiffness = isotropic(100.0, 10.0)
    made = Admittance(1, timestep=1e-4)
    made.reset(HERE, STILL)
    _run(made, _action(stiffness=stiffness), np.array([1.0, 0, 0, 0, 0, 0]), 1000)
    system = np.array([[0.0, 1.0, 0.0], [-100.0, -20.0, 1.0], [0.0, 0.0, 0.0]])
    exact = expm(0.1 * system) @ [0.0, 0.0, 1.0]
    assert made.position[0, 0, 0] == pytest.approx(exact[0], rel=0.01)
    assert made.velocity[0, 0, 0] == pytest.approx(exact[1], rel=0.01)


def test_equations_11_and_12_as_published() -> None:
    made = Admittance(1, settings=AdmittanceSettings(implicit=False, gain_time=0.02))
    made.reset(HERE, STILL)
    x, v = 0.0, 0.0
    for tick in range(50):
        made.step(_action(), np.array([[[2.0, 0, 0, 0, 0, 0]]]), 0.02 * tick)
        v += 0.02 * (-100.0 * x - 20.0 * v + 2.0)
        x += 0.02 * v
    assert made.position[0, 0, 0] == pytest.approx(x, rel=1e-9)


def test_stiff_springs_are_stable_at_50_hz() -> None:
    made = Admittance(1, settings=AdmittanceSettings(acceleration=1e9, speed=1e9))
    made.reset(HERE, STILL)
    _run(made, _action(stiffness=isotropic(1e6, 1e5)), np.array([100.0, 0, 0, 0, 0, 0]), 400)
    assert made.position[0, 0, 0] == pytest.approx(1e-4, rel=0.05)


def test_critical_damping_is_twice_the_matrix_root() -> None:
    stiffness = along(np.array([1.0, 2.0, -1.0]), 80.0, 400.0, 40.0)
    np.testing.assert_allclose(critical_damping(stiffness), 2.0 * np.real(sqrtm(stiffness)), atol=1e-8)
    with pytest.raises(RetorqueError, match="positive definite"):
        critical_damping(-stiffness)


@pytest.mark.parametrize("axis", ([0.0, 0.0, 1.0], [0.6, -0.48, 0.64]))
def test_rotation_errors_go_on_past_pi(axis: list[float]) -> None:
    near, out, turned = np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for angle in np.linspace(0.0, 4.0 * np.pi, 200):
        vector = angle * np.array(axis)
        rotate_by(vector, np.eye(3), turned)
        np.testing.assert_allclose(turned, Rotation.from_rotvec(vector).as_matrix(), atol=1e-12)
        rotation_between(np.eye(3), turned, near, out)
        np.testing.assert_allclose(out, vector, atol=1e-5)
        near[:] = out


def test_gains_that_are_no_gains_are_left_and_named() -> None:
    made = Admittance(1)
    made.reset(HERE, STILL)
    _run(made, _action(), np.zeros(6), 3)
    before = made.stiffness.copy()
    for bad in (isotropic(-5.0, 1.0), np.full((6, 6), np.nan), np.triu(np.ones((6, 6)))):
        made.step(_action(stiffness=bad), np.zeros((1, 1, 6)), 0.1)
        assert made.codes[0] & ComplyCode.GAIN
        np.testing.assert_allclose(made.stiffness, before)
    made.step(_action(damping=-np.eye(6)), np.zeros((1, 1, 6)), 0.1)
    assert made.codes[0] & ComplyCode.GAIN


def test_gain_changes_are_bumpless() -> None:
    made = Admittance(1)
    made.reset(HERE, STILL)
    push = np.array([[[3.0, 0, 0, 0, 0, 0]]])
    _run(made, _action(), push[0, 0], 200)
    speeds = []
    stiff = _action(stiffness=isotropic(400.0, 10.0))
    for tick in range(100):
        made.step(stiff, push, 4.0 + 0.02 * tick)
        speeds.append(abs(made.velocity[0, 0, 0]))
    assert max(np.abs(np.diff([0.0, *speeds]))) < 0.05  # a step of gains at once gives 0.15 m/s in one tick
    assert made.position[0, 0, 0] == pytest.approx(3.0 / 400.0, rel=0.02)


def test_speed_and_acceleration_are_clamped() -> None:
    made = Admittance(1, settings=AdmittanceSettings(speed=0.1, acceleration=2.0))
    made.reset(HERE, STILL)
    last = 0.0
    for tick in range(50):
        made.step(_action(), np.array([[[500.0, 0, 0, 0, 0, 0]]]), 0.02 * tick)
        assert made.codes[0] & ComplyCode.SPEED
        now = made.velocity[0, 0, 0]
        assert now <= 0.1 + 1e-9 and now - last <= 2.0 * 0.02 + 1e-9
        last = now


def test_a_command_that_stops_softens_and_comes_back() -> None:
    made = Admittance(1)
    made.reset(HERE, STILL)
    wrench = np.array([[[5.0, 0, 0, 0, 0, 0]]])
    for tick in range(100):
        made.step(_action(wrench=wrench, time=0.02 * tick), np.zeros((1, 1, 6)), 0.02 * tick)
    old = _action(wrench=wrench, time=2.0)
    for tick in range(200):
        made.step(old, np.zeros((1, 1, 6)), 2.0 + 0.02 * tick)
    assert made.codes[0] & ComplyCode.STALE
    assert made.stiffness[0, 0, 0, 0] == pytest.approx(30.0, rel=0.02)
    assert np.abs(made.velocity).max() < 1e-3  # it neither goes on nor jumps back
    made.step(_action(time=6.0), np.zeros((1, 1, 6)), 6.0)
    assert not made.codes[0] & ComplyCode.STALE


def test_a_command_that_is_not_finite_is_left() -> None:
    made = Admittance(1)
    made.reset(HERE, STILL)
    made.step(_action(position=HERE * np.nan), np.zeros((1, 1, 6)), 0.0)
    assert made.codes[0] & ComplyCode.BAD_COMMAND
    assert np.isfinite(made.position).all()


def test_a_minute_of_random_contact_stays_within_the_tank() -> None:
    settings = AdmittanceSettings(tank=1.0, tank_power=0.0)
    made = Admittance(2, trials=3, settings=settings)
    rng = np.random.default_rng(5)
    position, rotation = np.zeros((3, 2, 3)), np.broadcast_to(np.eye(3), (3, 2, 3, 3))
    made.reset(position, rotation)
    given = np.zeros(3)  # work done on what touches [J]
    emptied = False
    for tick in range(3000):
        if tick % 40 == 0:
            position = 0.05 * rng.standard_normal((3, 2, 3))
            stiffness = np.stack([[isotropic(x, 10.0) for x in rng.uniform(50.0, 800.0, 2)] for _ in range(3)])
            wrench = np.concatenate([4.0 * rng.standard_normal((3, 2, 3)), np.zeros((3, 2, 3))], axis=-1)
        wall = 800.0 * np.minimum(0.0, -made.position)  # a spring beyond zero on each axis
        external = np.concatenate([wall - 5.0 * made.velocity[..., :3] * (wall < 0.0), np.zeros((3, 2, 3))], axis=-1)
        made.step(ComplianceAction(position, rotation, stiffness, None, None, wrench), external, 0.02 * tick)
        given -= 0.02 * np.einsum("tsi,tsi->t", external, made.velocity)
        moving = 0.5 * np.sum(made.velocity**2, axis=(1, 2))
        springs = 0.5 * np.einsum("tsi,tsij,tsj->t", made.error, made.stiffness, made.error)
        # Nothing but the tank pays: masses, springs, tank and the work that was done began as a full tank.
        assert np.all(moving + springs + made.tank + given < 1.0 + 1e-3)
        emptied |= bool((made.codes & ComplyCode.TANK).any())
        assert (made.tank >= -0.1).all() and (made.tank <= 1.0 + 1e-9).all()  # the debt of one step at the most
    assert np.abs(made.position).max() < 0.5
    assert given.max() < 1.1
    assert emptied
