"""Pushing: geometry of pushes, moves of the hand, the forward model, the planner and the tasks by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.policy_task import Robots, with_tool
from retorque.tasks.push.box_task import HALF, BoxTask, box_pose, errors, planar, wrapped
from retorque.tasks.push.legs import Legs
from retorque.tasks.push.push_model import load_push_model
from retorque.tasks.push.push_planner import HEIGHT, SAFE, PushPlanner, push_legs
from retorque.tasks.push.pushes import CLEARANCE, TIP, Pushes, change_of, moved_box
from retorque.tasks.push.pushing_motions import pushing_motions
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def test_planar_poses_come_back_and_angles_wrap() -> None:
    poses = np.array([[0.5, 0.1, 3.0], [0.4, -0.2, -3.1], [0.6, 0.0, 0.0]])
    np.testing.assert_allclose(planar(box_pose(poses)), poses, atol=1e-12)
    assert wrapped(np.array(2.0 * np.pi + 0.3)) == pytest.approx(0.3)
    distance, turn = errors(np.array([0.0, 0.0, 3.1]), np.array([0.3, 0.4, -3.1]))
    assert distance == pytest.approx(0.5) and turn == pytest.approx(2.0 * np.pi - 6.2)
    assert errors(np.array([np.nan, 0.0, 0.0]), np.zeros(3))[0] == np.inf


def test_changes_of_a_box_and_their_inverse() -> None:
    rng = np.random.default_rng(0)
    before, change = rng.normal(size=(10, 3)), 0.3 * rng.normal(size=(10, 3))
    np.testing.assert_allclose(change_of(before, moved_box(before, change)), change, atol=1e-12)


def test_pushes_begin_beside_their_face_and_end_inside() -> None:
    pushes = Pushes.sample((200,), np.random.default_rng(1))
    box = np.tile([0.5, 0.1, 0.4], (200, 1))
    first, last = pushes.ends(box)
    cos, sin = np.cos(0.4), np.sin(0.4)
    turn = np.array([[cos, sin], [-sin, cos]])
    start, end = (first - box[:, :2]) @ turn.T, (last - box[:, :2]) @ turn.T
    outside = np.maximum(np.abs(start[:, 0]) - HALF[0], np.abs(start[:, 1]) - HALF[1])
    assert outside.min() > TIP and outside.max() <= TIP + CLEARANCE + 1e-9
    way = np.linalg.norm(end - start, axis=-1)
    np.testing.assert_allclose(way, pushes.length + CLEARANCE, atol=1e-12)
    assert pushes.features().shape == (200, 7)


def test_legs_start_and_stop_where_they_should_each_at_its_own_time() -> None:
    legs = Legs(2, np.eye(3))
    hand = np.array([[0.5, 0.0, 0.3], [0.4, 0.1, 0.2]])
    first, last = np.array([[0.6, 0.0], [0.5, 0.2]]), np.array([[0.65, 0.0], [0.5, 0.1]])
    points, times = push_legs(hand, first, last, np.array([0.05, 0.1]))
    legs.begin(np.array([True, True]), 1.0, points, times)
    np.testing.assert_allclose(legs.at(1.0).position, hand)
    half = legs.at(1.0 + times[0, :3].sum() + 1e-9).position[0]
    np.testing.assert_allclose(half, [0.6, 0.0, HEIGHT], atol=1e-6)
    over = 1.0 + times.sum(axis=1)
    assert legs.over(over[0] + 1e-6)[0] and not legs.over(min(over) - 1e-3).any()
    end = legs.at(10.0)
    np.testing.assert_allclose(end.position, np.column_stack([last, [SAFE, SAFE]]))
    assert not end.velocity.any()
    dt = 1e-5
    one, two = legs.at(1.5), legs.at(1.5 + dt)
    np.testing.assert_allclose((two.position - one.position) / dt, one.velocity, atol=1e-3)
    legs.begin(np.array([True, False]), 20.0, points, times)
    np.testing.assert_allclose(legs.at(20.0).position, [hand[0], end.position[1]])


def test_the_model_on_board_knows_where_boxes_go() -> None:
    model = load_push_model()
    straight = Pushes(np.array([0, 1, 2, 3]), np.zeros(4), np.full(4, 0.08), np.zeros(4))
    change = model(straight)
    expected = 0.08 * np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    np.testing.assert_allclose(change[:, :2], expected, atol=0.025)
    assert np.abs(change[:, 2]).max() < 0.1
    off = model(Pushes(np.array([0, 0]), np.array([0.7, -0.7]), np.full(2, 0.08), np.zeros(2)))
    assert off[0, 2] * off[1, 2] < 0.0 and np.abs(off[:, 2]).min() > 0.15


def test_the_planner_chooses_what_brings_the_box_nearer_and_rests_at_the_goal() -> None:
    task = BoxTask(PANDA, 6, 1000)
    planner = PushPlanner(PANDA, task.goal, seed=0)
    chosen = planner._choose(task.start)
    after = moved_box(task.start, planner._model(chosen))
    before, now = errors(task.start, task.goal), errors(after, task.goal)
    assert (np.hypot(now[0], 0.11 * now[1]) < np.hypot(before[0], 0.11 * before[1])).all()
    target = task.target(Robots.ideal(PANDA, 6))
    target.place("box", box_pose(task.goal))
    state = target.read()
    planner.reset(state)
    state.time = 100.0
    still = planner.act(state).position
    state.time = 101.0
    np.testing.assert_array_equal(planner.act(state).position, still)
    assert state.objects is not None
    state.objects[0, 0, 0] = np.nan  # a box that is not seen is not pushed
    assert np.isfinite(planner.act(state).position).all()


def test_random_pushes_are_learnt_from_and_resumed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training.train_push_model import PushTraining, train

    settings = PushTraining(pushes=100, batch=50, steps=30, width=16, workers=1, out=tmp_path / "run")
    path = train(settings)
    stamps = {file: file.stat().st_mtime_ns for file in settings.out.glob("pushes-*")}
    assert len(stamps) == 2
    path.unlink()
    assert load_push_model(train(settings)) is not None
    assert stamps == {file: file.stat().st_mtime_ns for file in settings.out.glob("pushes-*")}
    with pytest.raises(RetorqueError, match="other settings"):
        train(replace(settings, seed=1001))


def test_tasks_and_policies_by_name() -> None:
    with pytest.raises(RetorqueError, match="did you mean 'push'"):
        make_task("pusj", PANDA, 1, 0)
    with pytest.raises(RetorqueError, match="Panda"):
        make_task("push", Robot.load("z1"), 1, 0)
    with pytest.raises(RetorqueError, match="policy of 'ball'"):
        make_policy(make_task("ball", PANDA, 1, 0), "act")
    with pytest.raises(RetorqueError, match="no weights"):
        make_policy(make_task("ball", PANDA, 1, 0), "lqr", Path("w"))
    with pytest.raises(RetorqueError, match="trials"):
        make_task("push", PANDA, 2, 0).target(Robots.ideal(PANDA, 3))


def test_a_tool_is_as_heavy_as_it_says() -> None:
    held = with_tool(PANDA, PANDA.end_effector, 0.4, np.array([0.1, 0.05, 0.01]))
    link = PANDA.end_effector.link
    assert held.link(link).mass == pytest.approx(PANDA.link(link).mass + 0.4)
    assert np.linalg.eigvalsh(held.link(link).inertia_matrix).min() > 0.0


def test_pushing_motions_are_smooth_and_go_where_the_joints_went() -> None:
    motion = pushing_motions(PANDA, 2, 0.6, 1000)
    assert motion.duration == pytest.approx(0.6)
    first, last = motion.at(0.0), motion.at(9.0)
    np.testing.assert_allclose(first.velocity, 0.0, atol=1e-9)
    assert np.abs(last.position - first.position).max() > 0.02  # it has begun to move
    ahead, now = motion.at(0.3 + 1e-5), motion.at(0.3)
    np.testing.assert_allclose((ahead.position - now.position) / 1e-5, now.velocity, atol=1e-3)
    with pytest.raises(RetorqueError, match="up to 15 s"):
        pushing_motions(PANDA, 2, 16.0, 1000)
    with pytest.raises(RetorqueError, match="made for robot 'panda'"):
        pushing_motions(Robot.load("z1"), 2, 0.6, 1000)
