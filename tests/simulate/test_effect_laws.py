"""Unmodelled effects alone, against their equations: LuGre, springs in the gears, ripple, delay."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.simulate.effects import EFFECTS, Delay, Effect, FlexibleJoints, LuGre, Ripple, effect

ONE = np.zeros((1, 1))
H = 1e-4


def steady(made: Effect, velocity: float, seconds: float = 1.0) -> float:
    """Torque lost at a constant velocity [N·m]."""
    made.reset(ONE, ONE)
    at = np.full((1, 1), velocity)
    for _ in range(round(seconds / H)):
        torque, _ = made.torque(ONE, at, ONE, ONE, H)
    return -float(torque[0, 0])


@pytest.mark.parametrize("velocity", [0.01, 0.05, 0.3, 2.0, -0.05])
def test_lugre_settles_at_its_stribeck_curve(velocity: float) -> None:
    made = LuGre(coulomb=1.0, static=1.8, stribeck_velocity=0.05)
    level = 1.0 + 0.8 * np.exp(-((velocity / 0.05) ** 2))
    assert steady(made, velocity) == pytest.approx(np.sign(velocity) * level, rel=1e-3)


def test_lugre_bristles_are_a_spring_while_they_stick() -> None:
    made = LuGre(stiffness=2000.0, damping=0.0)
    made.reset(ONE, ONE)
    moved, slow = 0.0, np.full((1, 1), 1e-4)
    for _ in range(100):
        torque, _ = made.torque(ONE, slow, ONE, ONE, H)
        moved += 1e-4 * H
    assert float(torque[0, 0]) == pytest.approx(-2000.0 * moved, rel=1e-3)


def test_lugre_takes_energy_over_any_way_there_and_back() -> None:
    rng = np.random.default_rng(0)
    made = LuGre()
    made.reset(ONE, ONE)
    velocity = 0.2 * np.sin(np.linspace(0.0, 40.0, 8000)) + 0.05 * rng.standard_normal(8000)
    taken = 0.0
    for v in velocity:
        torque, _ = made.torque(ONE, np.full((1, 1), v), ONE, ONE, H)
        taken -= float(torque[0, 0]) * v * H
    assert taken > 0.0


@pytest.mark.parametrize("speed", [1e-6, 1.0, 1e3])
def test_lugre_is_bounded_at_any_speed_and_step(speed: float) -> None:
    made = LuGre(stiffness=1e6, damping=0.0)
    made.reset(ONE, ONE)
    for sign in (1.0, -1.0, 1.0):
        for _ in range(50):
            torque, slope = made.torque(ONE, np.full((1, 1), sign * speed), ONE, ONE, 4e-3)
        assert abs(float(torque[0, 0])) <= made.static * 1.01 and np.all(slope >= 0.0)


def test_ripple_comes_back_every_turn_and_does_no_work_over_it() -> None:
    made = Ripple(amplitude=0.6, order=20.0)
    q = np.linspace(0.0, 2.0 * np.pi, 4001)[:-1, None]
    added, _ = made.torque(q, np.zeros_like(q), np.zeros_like(q), np.zeros_like(q), H)
    again, _ = made.torque(q + 2.0 * np.pi, np.zeros_like(q), np.zeros_like(q), np.zeros_like(q), H)
    np.testing.assert_allclose(again, added, atol=1e-9)
    assert abs(float(added.sum())) < 1e-9 and np.max(np.abs(added)) == pytest.approx(0.6, rel=1e-3)


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_a_held_link_feels_the_motor_s_torque_in_the_end(gap: float) -> None:
    """The twist is torque over stiffness, beyond half of the gap."""
    made = FlexibleJoints(stiffness=500.0, damping=5.0, gap=gap)
    made.link_armature(np.full((1, 1), 0.1))
    made.reset(ONE, ONE)
    push = np.full((1, 1), 3.0)
    for _ in range(20000):
        passed, _ = made.torque(ONE, ONE, push, ONE, H)
    assert float(passed[0, 0]) == pytest.approx(3.0, abs=1e-3)
    assert abs(float(made.motor_velocity[0, 0])) < 1e-4


def test_rotor_and_link_together_weigh_what_the_armature_did() -> None:
    made = FlexibleJoints(stiffness=1e4, damping=0.0)
    armature = np.array([[0.1, 0.02]])
    left = made.link_armature(armature)
    made.reset(np.zeros((1, 2)), np.zeros((1, 2)))
    assert np.all(left >= 0.0) and np.all(left < armature)
    zeros = np.zeros((1, 2))
    made.torque(zeros, zeros, np.ones((1, 2)), zeros, 1e-7)
    rotor = 1e-7 / made.motor_velocity  # what a torque of 1 accelerates
    np.testing.assert_allclose(rotor + left, armature, rtol=1e-4)


def test_within_the_gap_nothing_is_passed_on() -> None:
    made = FlexibleJoints(gap=0.02)
    made.link_armature(np.full((1, 1), 0.1))
    made.reset(ONE, ONE)
    passed, slope = made.torque(np.full((1, 1), 0.005), ONE, ONE, ONE, H)
    assert float(passed[0, 0]) == 0.0 and float(slope[0, 0]) == 0.0


@pytest.mark.parametrize("ticks", [0, 1, 4])
def test_delay_holds_the_first_command_and_forgets_at_reset(ticks: int) -> None:
    made = Delay(ticks)
    for _ in range(2):
        made.reset(ONE, ONE)
        out = [float(made.command(np.full((1, 1), float(k)))[0, 0]) for k in range(8)]
        assert out == [float(max(0, k - ticks)) for k in range(8)]


def test_a_delayed_command_is_not_the_callers_array() -> None:
    made = Delay(2)
    made.reset(ONE, ONE)
    command = np.ones((1, 1))
    for _ in range(3):
        made.command(command)
    command[:] = 9.0
    assert float(made.command(ONE)[0, 0]) == 1.0


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_effects_are_new_each_time_and_a_batch_is_each_of_its_robots(name: str) -> None:
    rng = np.random.default_rng(1)
    q, v, u = np.cumsum(rng.normal(0.0, 0.01, (3, 40, 3, 2)), axis=1)
    together, alone = effect(name), effect(name)
    armature = np.full((3, 2), 0.05)
    assert together is not effect(name)
    together.link_armature(armature), alone.link_armature(armature[1:2])
    together.reset(q[0], v[0]), alone.reset(q[0, 1:2], v[0, 1:2])
    none = np.zeros((3, 2))
    for k in range(40):
        ours = together.torque(q[k], v[k], together.command(u[k]), none, 1e-3)
        theirs = alone.torque(q[k, 1:2], v[k, 1:2], alone.command(u[k, 1:2]), none[1:2], 1e-3)
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a[1:2], b)
