"""Turning objects: contacts as a hybrid problem, schedules, scores, and a sphere that is lifted in a simulated hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.robots.rotation import from_axis_angle, to_quaternion
from retorque.robots.state import Base, State
from retorque.tasks.rotate import ball_turning
from retorque.tasks.rotate.ball_turning import BallTurning, BallTurningSettings
from retorque.tasks.rotate.contact_servo import contact_frame, servo_contacts, velocity_at
from retorque.tasks.rotate.hand_objects import HAND_OBJECTS, TIP_RADIUS, hand_object
from retorque.tasks.rotate.hand_policy import _rigid
from retorque.tasks.rotate.hand_turning import CENTRE, HandTurning, HandTurningSettings
from retorque.tasks.rotate.kneeling import Kneeling
from retorque.tasks.rotate.object_turns import ObjectTurns, angles_about
from retorque.tasks.rotate.stroke_schedule import Stroke, StrokeSchedule
from retorque.tasks.rotate.turning_scenes import turning_scene
from retorque.tasks.rotate.turns_picture import picture
from retorque.work.errors import RetorqueError

LIFT = Stroke(axis=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0), reach=0.008, speed=0.03)
TURN = Stroke(axis=(0.0, 0.0, 0.0, 0.0, 1.0, 0.0), reach=0.3, speed=0.5)


@pytest.mark.parametrize("name", HAND_OBJECTS)
def test_tips_move_with_the_object_and_their_forces_hold_it(name: str) -> None:
    thing = hand_object(name)
    centres, normals = thing.grasp()
    points, grips = centres + TIP_RADIUS * normals, thing.grips(2.5)
    twist = np.array([0.01, 0.0, 0.02, 0.0, 0.3, -0.1])
    load = np.array([0.0, 0.0, -9.81 * thing.thing.mass, 0.0, 0.0, 0.0])
    action = servo_contacts(points, normals, grips, np.eye(6), twist, load, (40.0, 300.0))
    for k in range(3):
        np.testing.assert_allclose(action.velocity[k], twist[:3] + np.cross(twist[3:], points[k]), atol=1e-9)
        np.testing.assert_allclose(
            action.stiffness[k, :3, :3] @ action.velocity[k], 300.0 * action.velocity[k], atol=1e-9
        )
        assert action.force[k] @ normals[k] > 0.8 * grips[k]  # pressed into the object
    pressed = action.force.sum(axis=0)
    assert np.linalg.norm(pressed[:2]) < 0.2 * grips.sum()  # and against each other
    assert grips[2] == (3.75 if thing.flat else 2.5)  # flat things are held more firmly
    assert np.allclose((grips[:, None] * normals).sum(axis=0), 0.0, atol=1e-9)


def test_a_ball_on_the_floor_rolls_under_a_hand() -> None:
    radius = 0.08
    top = np.array([[0.0, 0.0, radius]])
    action = servo_contacts(
        top,
        np.array([[0.0, 0.0, -1.0]]),
        np.array([2.0]),
        np.array([[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]),
        np.array([0.5]),
        np.array([0.0, 0.0, -2.0, 0.0, 0.0, 0.0]),
        (80.0, 400.0),
        ground=np.array([0.0, 0.0, -radius]),
    )
    np.testing.assert_allclose(action.velocity, [[2.0 * radius * 0.5, 0.0, 0.0]], atol=1e-9)  # twice the centre's
    np.testing.assert_allclose(action.force, [[0.0, 0.0, -2.0]], atol=1e-6)
    with pytest.raises(RetorqueError, match="contradicts"):  # it cannot leave the floor
        servo_contacts(
            top,
            np.array([[0.0, 0.0, -1.0]]),
            np.array([2.0]),
            np.eye(6)[2:3],
            np.array([0.5]),
            np.zeros(6),
            (80.0, 400.0),
            ground=np.array([0.0, 0.0, -radius]),
        )


def test_frames_and_velocities_of_contacts() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        normal, point, twist = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(6)
        frame = contact_frame(normal)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(frame[0], normal / np.linalg.norm(normal))
        np.testing.assert_allclose(velocity_at(point) @ twist, twist[:3] + np.cross(twist[3:], point))


def test_a_schedule_goes_to_both_ends_and_its_twist_is_its_derivative() -> None:
    schedule = StrokeSchedule((LIFT, TURN), cycles=2, pause=0.3)
    times = np.linspace(0.0, schedule.duration - 1e-6, 2000)
    poses = np.array([schedule.at(t)[0] for t in times])
    assert np.isclose(np.ptp(poses[:, 2]), 2 * LIFT.reach, rtol=1e-3)
    assert np.isclose(np.ptp(poses[:, 4]), 2 * TURN.reach, rtol=1e-3)
    step = 1e-6
    for time in (0.1, 0.7, 2.0, 5.0):
        slope = (schedule.at(time + step)[0] - schedule.at(time - step)[0]) / (2 * step)
        np.testing.assert_allclose(schedule.at(time)[1], slope, atol=1e-5)
    assert schedule.which(schedule.duration + 1.0)[0] == -1 and not schedule.at(schedule.duration + 1.0)[0].any()


def test_the_object_is_read_off_three_tips() -> None:
    rng = np.random.default_rng(4)
    tips, centre = rng.standard_normal((3, 3)), rng.standard_normal(3)
    turn, shift = from_axis_angle([0.0, 0.6, 0.8], 0.4), np.array([0.1, -0.2, 0.3])
    found, moved = _rigid(tips, tips @ turn.T + shift, centre)
    np.testing.assert_allclose(found, turn, atol=1e-9)
    np.testing.assert_allclose(moved, turn @ centre + shift, atol=1e-9)


def test_ways_are_measured_and_lost_objects_count_nothing() -> None:
    schedule = StrokeSchedule((LIFT, TURN), cycles=1, pause=0.1)
    turns = ObjectTurns(schedule, 0.5, 2, dropped=0.05)
    for time in np.arange(0.0, 0.5 + schedule.duration, 0.02):
        pose, _ = schedule.at(time - 0.5) if time >= 0.5 else (np.zeros(6), np.zeros(6))
        place = np.zeros((2, 7))
        place[:, :3] = 0.5 * pose[:3]
        place[:, 3:] = to_quaternion(from_axis_angle([0.0, 1.0, 0.0], 0.9 * pose[4]))
        if time > 2.0:
            place[1, 2] -= 0.2  # dropped
        turns.add(time, place, np.ones((2, 3)), np.zeros(2, dtype=bool))
    ways = turns.strokes()
    np.testing.assert_allclose(ways[:, 0], [LIFT.reach, 1.8 * TURN.reach], rtol=0.02)
    assert turns.lost.tolist() == [False, True] and not ways[:, 1].any()
    quaternions = np.array([to_quaternion(from_axis_angle([0.0, 0.0, 1.0], a)) for a in (0.0, 2.0, 4.0, 6.5)])
    np.testing.assert_allclose(angles_about(quaternions, np.array([0.0, 0.0, 1.0])), [0.0, 2.0, 4.0, 6.5], atol=1e-9)


def test_a_sphere_is_taken_over_and_lifted(tmp_path: Path) -> None:
    task = HandTurning(HandTurningSettings(thing="sphere", trials=2, seed=1001, cycles=1))
    task.schedule = StrokeSchedule((LIFT,), 1, 0.1)
    turns = task.run("retorque")
    assert not turns.lost.any()
    assert np.all(turns.strokes()[0] > 1.5 * LIFT.reach)  # of twice the reach
    held = np.array(turns.forces)[-20:]
    assert held.min() > 0.3 and held.max() < 8.0
    assert abs(np.array(turns.poses)[-1, 0, 2] - CENTRE[2]) < 0.02  # the stand is gone
    assert picture(turns, tmp_path / "turns.png").stat().st_size > 10_000


def test_palms_reach_the_ball_from_both_sides() -> None:
    task = BallTurning(BallTurningSettings(hands="both", trials=1))
    tree = task._frames(1)
    tree.update(task.start[None], task.base[None])
    hover = task.policy(1, task.settings.policy, task.palm).hover
    np.testing.assert_allclose(tree.position[0], hover, atol=1e-3)
    np.testing.assert_allclose(-tree.rotation[0, :, :, 2], -task.touch, atol=0.05)  # palms face the ball


def test_a_free_robot_kneels_and_turns_the_ball_without_falling() -> None:
    task = BallTurning(BallTurningSettings(hands="both", trials=1, seed=1000, cycles=1))
    assert task.robot.floating
    turns = task.run("retorque")
    assert not turns.lost.any()
    assert np.rad2deg(turns.strokes().min()) > 21.0


def test_a_robot_that_has_fallen_has_lost_the_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ball_turning.KNEELING, "hip_pitch", -1.2)  # bent forward, its weight is before its knees
    task = BallTurning(BallTurningSettings(hands="left", trials=1, seed=1000, cycles=1))
    turns = task.run("retorque")
    assert turns.lost.all() and turns.strokes().max() == 0.0


def test_kneeling_finds_its_base_and_turns_its_hips_against_pitch() -> None:
    task = BallTurning(BallTurningSettings(hands="left", trials=1))
    posture = Kneeling(task.robot, ball_turning.KNEES, ("left_hip_pitch", "right_hip_pitch"))
    q = task.start[None].copy()
    none = np.zeros((1, task.robot.n))
    posture.reset(State(0.0, q, none, none, Base(task.base[None], np.zeros((1, 6)))), q)
    away = task.base.copy()
    away[:3] += 0.1  # nobody tells a real robot where it is
    found = posture.locate(State(0.0, q, none, none, Base(away[None], np.zeros((1, 6)))))
    assert found is not None
    np.testing.assert_allclose(found.pose, task.base[None], atol=1e-9)
    pitched = task.base.copy()
    pitched[3:] = [np.cos(0.02), 0.0, np.sin(0.02), 0.0]  # by 0.1 rad from where it began
    state, told = State(0.0, q, none, none, Base(pitched[None], np.zeros((1, 6)))), q.copy()
    posture.adjust(state, None, told)  # type: ignore[arg-type]
    left, right = (task.robot.joint_names.index(f"{side}_hip_pitch") for side in ("left", "right"))
    np.testing.assert_allclose([told[0, left] - q[0, left], told[0, right] - q[0, right]], [0.1, -0.1], atol=1e-6)


def test_unknown_things_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for robot, what in (("leap_hand", "egg"), ("toddlerbot_2xm", "foot"), ("panda", "sphere")):
        with pytest.raises(RetorqueError):
            turning_scene(robot, what, 1, 0)
    assert main(["comply", "rotate", "--robot", "leap_hand", "--what", "egg"]) != 0
    assert "egg" in capsys.readouterr().err
