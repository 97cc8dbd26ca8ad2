"""The push's student: what it sees, what it is told, how it learns, and that it rests where it sees nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_clouds import (
    KEYPOINTS,
    POINTS,
    VIEWS,
    BoxClouds,
    box_vertices,
    hand_points,
    kept_points,
)
from retorque.tasks.push.box_task import HALF, BoxTask
from retorque.tasks.push.push_choice import REACH, SIDES
from retorque.tasks.push.push_network import PPO, load_push_network
from retorque.tasks.push.push_policy import NetworkPush
from retorque.tasks.push.student_network import STUDENT, StudentNetwork, StudentShape, load_student, save_student
from retorque.tasks.push.student_push import PAUSE, StudentPush, within_reach
from retorque.tasks.sight import open_eyes
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
SMALL = StudentShape(features=12, memory=8, width=16)


def _tensors(seed: int = 0) -> dict[str, np.ndarray]:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.training.student_module import Student
    from retorque.tasks.push.training.train_student import student_tensors

    torch.manual_seed(seed)
    return student_tensors(Student(SMALL))


def test_points_are_the_boxes_and_nothing_else() -> None:
    task = BoxTask(PANDA, 2, 1000)
    eyes = BoxClouds(task.target(Robots.ideal(PANDA, 2)), 5, noise=0.0)
    points, there = eyes.look(np.array([1, 0]))
    assert points.shape == (2, VIEWS * POINTS, 3) and there.reshape(2, VIEWS, POINTS).sum(axis=-1).min() > 50
    for row, trial in enumerate((1, 0)):
        x, y, yaw = task.start[trial]
        d = points[row][there[row]] - [x, y, HALF[2]]
        cos, sin = np.cos(yaw), np.sin(yaw)
        own = np.abs(np.column_stack([cos * d[:, 0] + sin * d[:, 1], cos * d[:, 1] - sin * d[:, 0], d[:, 2]]))
        assert np.abs((own - HALF).max(axis=-1)).max() < 1e-6  # on a face of the box


@pytest.mark.parametrize("cloud", [np.zeros((0, 3)), np.full((500, 3), np.nan), np.full((500, 3), 0.5)])
def test_a_cloud_that_shows_no_table_gives_no_points(cloud: np.ndarray) -> None:
    assert kept_points(cloud, np.random.default_rng(0)).shape == (0, 3)


def test_half_a_turn_of_the_box_leaves_its_corners_and_keypoints_hang_on_the_hand() -> None:
    pose = np.array([[0.5, 0.1, 0.3], [0.5, 0.1, 0.3 + np.pi], [0.5, 0.1, 0.3 - np.pi]])
    corners = box_vertices(pose)
    np.testing.assert_allclose(corners, corners[:1].repeat(3, axis=0), atol=1e-12)
    np.testing.assert_allclose(corners.mean(axis=1), [[0.5, 0.1, HALF[2]]] * 3, atol=1e-12)
    assert corners[..., 2].min() == pytest.approx(0.0) and corners[..., 2].max() == pytest.approx(2.0 * HALF[2])
    task = BoxTask(PANDA, 1, 0)
    from retorque.physics.rigid_body import RigidBody

    place, turn = RigidBody(task.robot).frame_pose(PANDA.end_effector, PANDA.home)
    found = hand_points(place, turn)
    assert found.shape == KEYPOINTS.shape and found[:, 2].min() == pytest.approx(place[2])  # the hand is above its tip
    far = within_reach(np.array([[2.0, 0.0], [0.1, 0.0], [0.5, 0.1], [np.nan, 0.0]]))
    np.testing.assert_allclose(np.linalg.norm(far, axis=-1), [REACH[1], REACH[0], np.hypot(0.5, 0.1), REACH[0]])


def test_numpy_and_pytorch_make_the_same_of_what_they_see() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.box_clouds import CENTRE, UNIT, cloud_centre, scaled
    from retorque.tasks.push.training.student_module import Looks, Student

    tensors = _tensors()
    own, trained = StudentNetwork(tensors, SMALL), Student(SMALL)
    trained.load_state_dict({name: torch.tensor(value) for name, value in tensors.items()})
    rng = np.random.default_rng(0)
    points, there = 0.5 + 0.1 * rng.standard_normal((2, 3, VIEWS * POINTS, 3)), rng.uniform(size=(2, 3, 192)) > 0.4
    there[0, 1] = False  # nothing is seen
    hand, goal = rng.standard_normal((2, 3, 20, 3)), rng.standard_normal((2, 3, 8, 3))
    centre = cloud_centre(points, there)
    np.testing.assert_allclose(centre[0, 1], CENTRE)
    near, place = scaled(points, centre).reshape(points.shape), (centre - CENTRE) / UNIT
    parts = (near, there, scaled(hand, centre), place, scaled(goal, centre), goal, goal, goal)
    looks = Looks(*(torch.as_tensor(x.astype(np.float32)) for x in parts))
    with torch.no_grad():
        preference, ends, corners = (x.numpy() for x in trained(looks))
    memory = np.zeros((3, SMALL.memory))
    for k in range(2):  # the second look remembers the first
        choice = own(points[k], there[k], hand[k], goal[k], memory)
        memory = choice.memory
        np.testing.assert_allclose(choice.preference, preference[k], atol=1e-4)
        np.testing.assert_allclose(choice.first, centre[k, :, None, :2] + UNIT * ends[k, ..., :2], atol=1e-5)
        np.testing.assert_allclose(choice.last, centre[k, :, None, :2] + UNIT * ends[k, ..., 2:4], atol=1e-5)
        np.testing.assert_allclose(scaled(choice.vertices, centre[k]), corners[k], atol=1e-4)


def test_the_teacher_tells_the_push_that_it_would_do_itself() -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training.student_lessons import advice, other_goals

    task = BoxTask(PANDA, 40, 1000)
    teacher = load_push_network(PPO, PANDA)
    chosen, ends = advice(teacher, task.start, task.goal)
    np.testing.assert_allclose(chosen.sum(axis=-1), 1.0)
    best = np.argmax(chosen, axis=-1)
    assert (best < SIDES).all()
    policy = NetworkPush(PANDA, task.goal, teacher)
    target = task.target(Robots.ideal(PANDA, 40))
    policy.reset(target.read())
    state = target.read()
    state.time = 5.0
    policy.act(state)
    told = ends[np.arange(40), best]
    np.testing.assert_allclose(policy._legs._points[:, 3, :2], told[:, :2], atol=1e-9)
    np.testing.assert_allclose(policy._legs._points[:, 4, :2], told[:, 2:4], atol=1e-9)
    turn = np.array([0.0, 0.0, np.pi])  # which no cloud can tell: the sides keep their names
    again, same = advice(teacher, task.start + turn, task.goal + turn)
    np.testing.assert_allclose(again, chosen, atol=1e-9)
    np.testing.assert_allclose(same, ends, atol=1e-9)
    rests, _ = advice(teacher, task.goal, task.goal)
    assert (np.argmax(rests, axis=-1) == SIDES).all()
    near = other_goals(task.start, np.random.default_rng(0)) - task.start
    assert np.linalg.norm(near[:, :2], axis=-1).max() < 0.12 and np.abs(near[:, 2]).max() < np.deg2rad(45.0)


def test_the_student_rests_where_it_sees_nothing_or_thinks_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    task = BoxTask(PANDA, 3, 1000)
    target = task.target(Robots.ideal(PANDA, 3))
    policy = StudentPush(PANDA, task.goal, StudentNetwork(_tensors(), SMALL))
    state = target.read()
    with pytest.raises(RetorqueError, match="open_eyes"):
        policy.reset(state)
    open_eyes(policy, target, 3)
    assert policy.eyes is not None
    real, looks = policy.network.__call__, []

    def look(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        looks.append(which)
        points, there = np.full((len(which), VIEWS * POINTS, 3), 0.5), np.ones((len(which), VIEWS * POINTS), dtype=bool)
        there[which == 1] = False
        return points, there

    def think(*args: np.ndarray) -> object:
        made = real(*args)
        first = made.first.copy()
        first[args[1].shape[0] - 1] = np.nan
        return replace(made, preference=np.tile([0.0, 9.0, 0.0, 0.0, 1.0], (len(first), 1)), first=first)

    monkeypatch.setattr(policy.eyes, "look", look)
    thinking = StudentNetwork(_tensors(), SMALL)
    monkeypatch.setattr(type(thinking), "__call__", lambda self, *args: think(*args))
    policy.reset(state)
    state.time = 5.0
    told = policy.act(state)
    assert np.isfinite(told.position).all()
    assert list(policy._legs.over(5.001)) == [False, True, True]  # one pushes; one saw nothing, one thought nonsense
    assert policy._memory[0].any() and not policy._memory[1:].any()
    state.time += 0.5 * PAUSE
    policy.act(state)
    assert len(looks) == 1  # nobody looks all the time
    state.time += 0.5 * PAUSE
    policy.act(state)
    assert [list(x) for x in looks] == [[0, 1, 2], [1, 2]]


def test_weights_of_another_task_robot_or_size_are_refused(tmp_path: Path) -> None:
    tensors = _tensors()
    path = save_student(tmp_path / "s.safetensors", tensors, SMALL, PANDA, {})
    assert load_student(path, PANDA).shape == SMALL
    with pytest.raises(RetorqueError, match="not for 'z1'"):
        load_student(path, Robot.load("z1"))
    with pytest.raises(RetorqueError, match="push student weights"):
        load_student(PPO, PANDA)
    with pytest.raises(RetorqueError, match="push policy weights"):
        make_policy(make_task("push", PANDA, 1, 0), "ppo", path)
    for torn in ("memory.weight_hh", "points.0.weight", "head.0.weight"):
        with pytest.raises(RetorqueError, match=r"sizes|lack"):
            StudentNetwork({name: value for name, value in tensors.items() if name != torn}, SMALL)
    with pytest.raises(RetorqueError, match="sizes"):
        StudentNetwork(tensors, replace(SMALL, memory=9))


def test_lessons_that_were_stopped_go_on_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training import student_lessons, train_student
    from retorque.work.tensors import load_tensors

    monkeypatch.setattr(student_lessons, "LOOKS", 2)
    settings = train_student.StudentTraining(rounds=2, environments=2, steps=2, batch=2, out=tmp_path / "whole")
    whole = train_student.train(settings)
    stopped, real, calls = replace(settings, out=tmp_path / "stopped"), train_student.student_loss, []

    def dying(*args: Any) -> object:
        calls.append(1)
        if len(calls) == 4:  # in the second round
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(train_student, "student_loss", dying)
    with pytest.raises(KeyboardInterrupt):
        train_student.train(stopped)
    again = train_student.train(stopped)
    one, other = (load_tensors(path, "push student weights", 1) for path in (whole, again))
    for name, value in one[0].items():
        np.testing.assert_array_equal(other[0][name], value)
    assert one[1]["made"]["arrived"] == other[1]["made"]["arrived"] and len(calls) == 6
    assert (settings.out / "curves.png").exists()


def test_the_student_on_board_brings_boxes_to_their_goals_by_clouds_alone() -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training.student_lessons import Classroom

    room = Classroom(PANDA, load_push_network(PPO, PANDA), 16)
    _, arrived = room.play(load_student(STUDENT, PANDA), 0.0, 4321)
    assert arrived >= 0.75
