"""Explanations that compete: a wrench is told from a payload, a drive from a touch; what won moves the estimate."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.adapt.default.explanations import BEHIND, STRANGE_MASS, WARY, Decision, Explanations
from retorque.adapt.default.reopening import Reopening
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.unknowns import ARMATURE, SCALE
from retorque.physics.parameters import mount
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

STEP, OVERLAP, NOISE = 0.01, 4.0, 0.1
SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")
CERTAIN = np.array([6.0])


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


def motion(robot: Robot, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A slow motion of all joints, (1, n) each."""
    rate = np.linspace(1.0, 2.0, robot.n)
    angle = rate * time
    return (
        (robot.home + 0.3 * np.sin(angle))[None],
        (0.3 * rate * np.cos(angle))[None],
        (-0.3 * rate**2 * np.sin(angle))[None],
    )


def weigh(robot: Robot, unexplained, seconds: float = 0.4, *, renewed: bool = False) -> Explanations:
    """Explanations after so much of a mismatch, with noise, renewed where they are hopeless."""
    rng = np.random.default_rng(5)
    body, found = RigidBody(robot), Explanations(robot, 1, STEP)
    found.restart(np.array([True]))
    for k in range(round(seconds / STEP)):
        q, qd, qdd = motion(robot, k * STEP)
        torque = body.inverse_dynamics(q, qd, qdd)
        y = unexplained(body, q, qd, qdd, torque) + NOISE * rng.standard_normal((1, robot.n))
        found.take(np.array([0]), y, NOISE**2 * np.eye(robot.n)[None], q, qd, qdd, torque, 1.0 / OVERLAP)
        if renewed:
            found.renew(np.array([0]))
    return found


def decide(found: Explanations, carried, slow: bool = False) -> Decision:
    return found.verdict(CERTAIN, carried, np.array([slow]))


def payload_torque(robot: Robot, mass: float):
    where = mount(robot)
    assert where is not None
    columns = slice(10 * where[0], 10 * where[0] + 10)
    ten = np.array([mass, 0.0, 0.0, 0.1 * mass, 0.01 * mass, 0.0, 0.01 * mass, 0.0, 0.0, 0.0])
    return lambda body, q, qd, qdd, torque: body.regressor(q, qd, qdd)[..., columns] @ ten


def test_a_push_at_the_hand_is_no_payload_and_its_place_is_found(panda: Robot) -> None:
    force = np.array([12.0, -9.0, 4.0])
    found = weigh(panda, lambda body, q, *_: -force @ body.jacobian(panda.end_effector, q)[:, :3])
    verdict = decide(found, np.array([1.0]))
    assert not verdict.payload[0] and verdict.joint[0] == -1
    assert found._hand.evidence[0] > max(found._arm.evidence[0], found._nothing.evidence[0])


def test_a_push_that_grew_and_keeps_its_size_is_told_from_one_that_wanders(panda: Robot) -> None:
    force, grown = np.array([3.0, 1.0, -14.0]), []

    def unexplained(body, q, qd, qdd, torque):
        grown.append(1)
        return -min(1.0, len(grown) / 20.0) * force @ body.jacobian(panda.end_effector, q)[:, :3]

    found = weigh(panda, unexplained, 0.8)
    assert found._steady.evidence[0] > found._hand.evidence[0] + 10.0
    np.testing.assert_allclose(found._steady.mean[0, :3], force, atol=1.0)


@pytest.mark.parametrize("slow", [False, True])
def test_what_came_slowly_is_a_payload_only_where_it_clearly_leads_a_steady_push(panda: Robot, slow: bool) -> None:
    found = weigh(panda, payload_torque(panda, 2.0), 0.6)
    assert decide(found, np.array([1.0]), slow).payload[0]
    found._steady.evidence[0] = found.payload.evidence[0] - 0.5 * WARY
    assert decide(found, np.array([1.0]), slow).payload[0] != slow


def test_what_a_steady_push_explains_clearly_better_is_no_payload(panda: Robot) -> None:
    found = weigh(panda, payload_torque(panda, 2.0), 0.6)
    for lead, own in ((0.5 * BEHIND, True), (2.0 * BEHIND, False)):
        found._steady.evidence[0] = found.payload.evidence[0] + lead
        assert decide(found, np.array([1.0])).payload[0] == own


@pytest.mark.parametrize("again", [False, True])
def test_what_is_picked_up_under_another_mismatch_gets_a_chance_of_its_own(panda: Robot, again: bool) -> None:
    """Half a second of a push, then 2 kg: without a new beginning the payload is still hundreds of log odds behind."""
    force, carried = np.array([12.0, -9.0, 4.0]), payload_torque(panda, 2.0)
    begun: list[int] = []

    def unexplained(body, q, qd, qdd, torque):
        begun.append(1)
        pushed = -force @ body.jacobian(panda.end_effector, q)[:, :3]
        return pushed if len(begun) < 60 else carried(body, q, qd, qdd, torque)

    found = weigh(panda, unexplained, 1.6, renewed=again)
    assert decide(found, np.array([1.0])).payload[0] == again


def test_a_push_stays_one_however_often_it_is_weighed_again(panda: Robot) -> None:
    force = np.array([12.0, -9.0, 4.0])
    found = weigh(panda, lambda body, q, *_: -force @ body.jacobian(panda.end_effector, q)[:, :3], 3.0, renewed=True)
    assert found._weighed_for[0] < 2.9  # it was
    verdict = decide(found, np.array([1.0]))
    assert not verdict.payload[0] and verdict.joint[0] == -1


def test_a_push_at_the_middle_of_the_arm_is_found_there(panda: Robot) -> None:
    force = np.array([20.0, 15.0, -10.0])
    found = weigh(panda, lambda body, q, *_: -force @ body.jacobian(found_frame(panda), q)[:, :3])
    verdict = decide(found, np.array([1.0]))
    assert not verdict.payload[0] and verdict.joint[0] == -1
    assert found._arm.evidence[0] > max(found._hand.evidence[0], found._nothing.evidence[0])


def found_frame(robot: Robot):
    return Explanations(robot, 1, STEP)._links


@pytest.mark.parametrize("mass", (2.0, 0.7))
def test_a_payload_is_no_push_and_its_mass_is_found(panda: Robot, mass: float) -> None:
    found = weigh(panda, payload_torque(panda, mass))
    verdict = decide(found, np.array([0.3]))
    assert verdict.payload[0] and verdict.joint[0] == -1
    assert found.payload.mean[0, 0] == pytest.approx(mass, abs=0.25)


def test_what_is_not_carried_cannot_be_put_down(panda: Robot) -> None:
    found = weigh(panda, payload_torque(panda, -2.0))
    assert not decide(found, np.array([0.3])).payload[0]
    assert decide(found, np.array([2.5])).payload[0]


def test_what_is_put_down_may_weigh_a_little_more_than_was_thought(panda: Robot) -> None:
    found = weigh(panda, payload_torque(panda, -2.0))
    beyond = STRANGE_MASS * found._most_mass  # [kg]
    carried = np.array([2.0 - 1.5 * beyond])
    assert decide(found, carried).payload[0]
    assert found._strangeness(np.array([2.2]))[0] == 0.0 < found._strangeness(carried)[0] < 3.0


def test_drives_that_all_lose_strength_are_the_robots_own(panda: Robot) -> None:
    found = weigh(panda, lambda body, q, qd, qdd, torque: 0.15 * torque)
    assert decide(found, np.array([0.3])).payload[0]
    assert found.payload.mean[0, -1] == pytest.approx(0.15, abs=0.05)


def test_one_joint_that_changes_is_told_from_a_touch(panda: Robot) -> None:
    def friction(body, q, qd, qdd, torque):
        y = np.zeros_like(q)
        y[:, 3] = 2.0 * np.tanh(qd[:, 3] / 0.05) + 0.5
        return y

    found = weigh(panda, friction, seconds=2.0)
    verdict = decide(found, np.array([0.3]))
    assert verdict.joint[0] == 3 and not verdict.payload[0]


def test_nothing_stays_undecided_or_over(panda: Robot) -> None:
    found = weigh(panda, lambda body, q, *_: np.zeros_like(q))
    verdict = decide(found, np.array([0.3]))
    assert not verdict.payload[0] and verdict.joint[0] == -1
    assert found.over[0]


def test_an_opening_moves_the_torques_as_the_explanation_says(panda: Robot) -> None:
    model = LinearModel(panda, gain_doubt=0.15, touch=6)
    found = Explanations(panda, 1, STEP)
    reopening = Reopening(model, found.columns)
    q, qd, qdd = motion(panda, 0.3)
    regressor = model.body.regressor(q, qd, qdd)
    torque = model.body.inverse_dynamics(q, qd, qdd)
    features = model.joint_features(qd, qdd, model.sign(torque), torque)
    _, rows = model.rows(regressor, features, np.zeros_like(q))
    mean = np.zeros(11)
    mean[:4] = 1.5, 0.05, 0.0, 0.1
    opening = reopening.payload(mean, 0.01 * np.eye(11))
    np.testing.assert_allclose(rows[0] @ opening.shift, regressor[0][:, found.columns] @ mean[:10], atol=0.05)
    gain = reopening.payload(np.append(np.zeros(10), 0.1), 0.01 * np.eye(11)).shift
    np.testing.assert_allclose(rows[0] @ gain, 0.1 * torque[0], rtol=1e-6)
    bias = reopening.joint(2, np.array([0.0, 0.7, 0.0, 0.0]), 0.01 * np.eye(4)).shift
    np.testing.assert_allclose(rows[0] @ bias, 0.7 * np.eye(panda.n)[2], atol=1e-6)


def test_gains_are_believed_until_they_are_opened(panda: Robot) -> None:
    model = LinearModel(panda, gain_doubt=0.15)
    plain = LinearModel(panda)
    root = Reopening(model, slice(60, 70)).closed_root(model.gain_std.max(axis=-1) / 0.15)
    for j in range(panda.n):
        block = slice(15 * j, 15 * j + 15)
        now = np.linalg.norm(model.joint_root[j] @ root[block], axis=-1)
        before = np.linalg.norm(plain.joint_root[j], axis=-1)
        np.testing.assert_allclose(now[SCALE], model.gain_std[j].max(), rtol=1e-6)
        np.testing.assert_allclose(np.delete(now, [13, 14]), np.delete(before, [13, 14]), rtol=1e-6)


def test_a_filter_widens_walks_and_renews_a_part() -> None:
    rng = np.random.default_rng(3)
    filter_ = SquareRootFilter(2, 6, 1.0)
    filter_.root[:] = rng.standard_normal((2, 6, 6))
    before = filter_.root @ filter_.root.mT
    columns = rng.standard_normal((6, 2))
    filter_.widen(0, columns)
    np.testing.assert_allclose(filter_.root[0] @ filter_.root[0].T, before[0] + columns @ columns.T, atol=1e-9)
    part = slice(4, 6)
    filter_.walk(np.array([1]), part, 0.5)
    grown = before[1].copy()
    grown[part, part] += 0.25 * np.eye(2)
    np.testing.assert_allclose(filter_.root[1] @ filter_.root[1].T, grown, atol=1e-9)
    filter_.mean[:] = 1.0
    filter_.renew(np.array([1]), part)
    after = filter_.root[1] @ filter_.root[1].T
    np.testing.assert_allclose(after[:4, :4], grown[:4, :4], atol=1e-9)
    np.testing.assert_allclose(after[4:], np.eye(6)[4:], atol=1e-9)
    assert filter_.mean[1].tolist() == [1.0] * 4 + [0.0] * 2 and filter_.mean[0].tolist() == [1.0] * 6


@pytest.mark.parametrize("name", SEVEN)
def test_the_ideal_robot_lies_inside_the_bounds(name: str) -> None:
    robot = Robot.load(name)
    model = LinearModel(robot)
    assert np.all(model.low[:, ARMATURE] <= robot.armature) and np.all(robot.armature <= model.high[:, ARMATURE])
    assert np.all(model.low[:, SCALE] < 0.0) and np.all(model.high[:, SCALE] > 0.0)
