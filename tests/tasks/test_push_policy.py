"""The learnt push: what it sees is the same from either side, what it does stays in reach, training goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.policy_task import Robots, play
from retorque.tasks.push.box_task import HALF, BoxTask, box_pose
from retorque.tasks.push.hand_drive import (
    ACTIONS,
    DECISION,
    FASTEST,
    LEASH,
    OBSERVATIONS,
    SENSED,
    BoxView,
    HandDrive,
    approach_place,
    sense,
)
from retorque.tasks.push.push_model import save_push_model
from retorque.tasks.push.push_network import HISTORY, PushNetwork, load_push_network, save_push_network
from retorque.tasks.push.push_planner import HEIGHT
from retorque.tasks.push.push_policy import DOWN, OVER, UP, NetworkPush
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def _tensors(rng: np.random.Generator, latent: int = 0, width: int = 16) -> dict[str, np.ndarray]:
    def part(name: str, *sizes: int) -> dict[str, np.ndarray]:
        made = {}
        for k, (a, b) in enumerate(pairwise(sizes)):
            made[f"{name}.{2 * k}.weight"] = (rng.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32)
            made[f"{name}.{2 * k}.bias"] = np.zeros(b, dtype=np.float32)
        return made

    tensors = part("actor", OBSERVATIONS + latent, width, ACTIONS)
    return tensors | (part("encoder", HISTORY * SENSED, width, latent) if latent else {})


def _box(pose: np.ndarray) -> np.ndarray:
    return np.concatenate([box_pose(pose), np.zeros((len(pose), 6))], axis=-1)


def _mirrored(point: np.ndarray, box: np.ndarray) -> np.ndarray:
    """A point (3,) on the other side of the plane through the box's x axis and the vertical."""
    across = np.array([-np.sin(box[2]), np.cos(box[2]), 0.0])
    return point - 2.0 * across * ((point - [*box[:2], 0.0]) @ across)


def test_a_push_to_the_left_looks_like_its_mirror_image_to_the_right() -> None:
    box, goal = np.array([0.5, 0.02, 0.3]), np.array([0.55, 0.06, 0.6])
    hand, moving = np.array([0.38, -0.03, 0.07]), np.array([0.02, 0.05, 0.0])
    place = _mirrored(np.array([*goal[:2], 0.0]), box)[:2]
    other = np.array([*place, 2.0 * box[2] - goal[2]])
    centre = np.array([*box[:2], 0.0])
    other_hand, other_moving = _mirrored(hand, box), _mirrored(moving + centre, box) - centre
    views = BoxView(_box(np.stack([box, box])), np.stack([goal, other]))
    hands, rates = np.stack([hand, other_hand]), np.stack([moving, other_moving])
    drive = HandDrive(hands + np.array([0.0, 0.0, 0.01]), np.eye(3))
    seen = views.observe(hands, rates, drive)
    assert seen.shape == (2, OBSERVATIONS)
    directions = slice(OBSERVATIONS - 6, OBSERVATIONS - 2)  # of the world's axes: these do tell the two apart
    np.testing.assert_allclose(np.delete(seen[0], np.r_[directions]), np.delete(seen[1], np.r_[directions]), atol=1e-9)
    assert np.abs(seen[0, directions] - seen[1, directions]).max() > 0.1
    action = np.array([[0.3, -0.7, 0.2], [0.3, -0.7, 0.2]])
    np.testing.assert_allclose(views.to_view(views.to_world(action)), action, atol=1e-12)
    told = views.to_world(action)
    np.testing.assert_allclose(_mirrored(told[0] + centre, box) - centre, told[1], atol=1e-9)


def test_the_goals_yaw_is_not_looked_at_where_it_does_not_count() -> None:
    box = _box(np.array([[0.5, 0.0, 0.1]]))
    drive = HandDrive(np.array([[0.4, 0.0, HEIGHT]]), np.eye(3))
    still = np.zeros((1, 3))
    one, two = (
        BoxView(box, np.array([[0.55, 0.0, yaw]]), any_yaw=True).observe(drive.target, still, drive)
        for yaw in (0.1, 0.9)
    )
    np.testing.assert_array_equal(one, two)


def test_the_hand_comes_down_beside_the_box_away_from_the_goal() -> None:
    task = BoxTask(PANDA, 200, 1000)
    place = approach_place(task.start, task.goal, clearance=0.03)
    away = place - task.start[:, :2]
    cos, sin = np.cos(task.start[:, 2]), np.sin(task.start[:, 2])
    own = np.stack([cos * away[:, 0] + sin * away[:, 1], -sin * away[:, 0] + cos * away[:, 1]], axis=-1)
    assert np.max(np.abs(own) / (np.array(HALF[:2]) + 0.0395), axis=-1) == pytest.approx(1.0)
    towards = task.goal[:, :2] - task.start[:, :2]
    assert (np.sum(away * towards, axis=-1) < 0.0).all()


def test_the_hands_target_moves_as_told_and_stays_near_the_hand() -> None:
    hand = np.array([[0.5, 0.0, HEIGHT], [0.5, 0.1, HEIGHT]])
    drive = HandDrive(hand, np.eye(3))
    drive.tell(1.0, np.array([[1.0, 0.0, 0.0], [np.nan, np.inf, 0.0]]), hand)
    np.testing.assert_allclose(drive.target[0], [0.5 + DECISION * FASTEST, 0.0, HEIGHT])
    np.testing.assert_allclose(drive.target[1], hand[1])
    half = drive.at(1.0 + DECISION / 2.0)
    np.testing.assert_allclose(half.position[0, 0], 0.5 + 0.5 * DECISION * FASTEST)
    np.testing.assert_allclose(half.velocity[0], [FASTEST, 0.0, 0.0])
    assert not drive.at(1.0 + 2.0 * DECISION).velocity.any()
    for k in range(40):
        drive.tell(2.0 + k * DECISION, np.array([[5.0, 0.0, 1.0], [-1.0, 0.0, -1.0]]), hand)
    np.testing.assert_allclose(drive.target[:, 0], [0.5 + LEASH, 0.5 - LEASH])
    np.testing.assert_allclose(drive.target[:, 2], [HEIGHT + 0.1, HEIGHT - 0.1])
    drive.restart(np.array([True, False]), hand)
    np.testing.assert_allclose(drive.target[0], hand[0])
    assert drive.target[1, 0] < 0.4 and not drive.action[0].any()
    assert sense(np.zeros((2, 7)), np.zeros((2, 7)), hand, drive).shape == (2, SENSED)


def test_weights_of_the_wrong_width_robot_or_task_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    good = _tensors(rng)
    for wrong in ("actor.0.weight", "actor.2.weight"):
        torn = dict(good)
        torn[wrong] = torn[wrong][:, :-1] if wrong == "actor.0.weight" else torn[wrong][:-1]
        with pytest.raises(RetorqueError, match="push policy takes"):
            PushNetwork(torn)
    with pytest.raises(RetorqueError, match="push policy takes"):
        PushNetwork({})
    path = save_push_network(tmp_path / "p.safetensors", good, PANDA, {})
    assert load_push_network(path, PANDA).latent == 0
    with pytest.raises(RetorqueError, match="not for 'z1'"):
        load_push_network(path, Robot.load("z1"))
    model = save_push_model(tmp_path / "m.safetensors", {f"{k}.weight": np.eye(3, 7) for k in (0, 2, 4)}, PANDA, {})
    with pytest.raises(RetorqueError, match="push policy weights"):
        load_push_network(model, PANDA)
    with pytest.raises(RetorqueError, match="push model weights"):
        make_policy(make_task("push", PANDA, 1, 0), "planner", path)


class Straight:
    """A network that pushes towards the goal, whatever it hits."""

    latent = 0

    def __call__(self, observation: np.ndarray, history: np.ndarray) -> np.ndarray:
        towards = observation[:, 3:5]
        length = np.maximum(np.linalg.norm(towards, axis=-1, keepdims=True), 0.1)
        return np.concatenate([0.7 * towards / length, np.zeros((len(towards), 1))], axis=-1)


def test_pushing_straight_from_behind_brings_most_boxes_to_their_place() -> None:
    task = BoxTask(PANDA, 6, 1000, yaw=0.0)
    policy = NetworkPush(PANDA, task.goal, Straight(), any_yaw=True)
    BoxTask.duration, before = 4.5, BoxTask.duration
    try:
        scores = play(task, task.target(Robots.ideal(PANDA, 6)), policy)
    finally:
        BoxTask.duration = before
    assert scores.mean() >= 0.5


def test_a_policy_that_returns_nothing_of_use_or_sees_no_box_keeps_the_loop_alive() -> None:
    task = make_task("push", PANDA, 2, 1000)
    assert isinstance(task, BoxTask)
    target = task.target(Robots.ideal(PANDA, 2))
    network = PushNetwork(_tensors(np.random.default_rng(1), latent=4))
    assert network.latent == 4
    policy = NetworkPush(PANDA, task.goal, network)
    state = target.read()
    policy.reset(state)
    state.time = UP + OVER + DOWN + 0.1
    assert state.objects is not None
    state.objects[0] = np.nan
    told = policy.act(state)
    assert np.isfinite(told.position).all() and np.isfinite(told.velocity).all()
    policy.network = lambda observation, history: np.full((2, ACTIONS), np.nan)
    state.time += DECISION
    assert np.isfinite(policy.act(state).position).all()
    lost = target.read()
    assert lost.objects is not None
    lost.objects[:] = np.nan
    policy.reset(lost)
    assert np.isfinite(policy.act(lost).position).all()


def test_advantages_by_hand() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.training.actor_critic import Rollout, advantages

    def column(*values: float) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32)[:, None]

    empty = torch.zeros(3, 1, 0)
    rollout = Rollout(
        observation=empty,
        action=empty,
        log_probability=column(0, 0, 0),
        reward=column(1, 2, 4),
        value=column(0.5, 1.0, 2.0),
        over=column(0, 1, 0),
        cut=column(0, 1, 1),
        after=column(1.0, 9.0, 3.0),
        physics=torch.zeros(1, 0),
    )
    found = advantages(rollout, 0.5, 0.5)[:, 0].tolist()
    # The third is cut by time, so its value after counts; the second is over for good, so nothing follows it.
    assert found == pytest.approx([1.0 + 0.5 - 0.5 + 0.25 * 1.0, 2.0 - 1.0, 4.0 + 1.5 - 2.0])


def test_numpy_and_pytorch_decide_alike_and_a_teacher_is_taken_over() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.training.actor_critic import ActorCritic
    from retorque.tasks.push.training.train_ppo import actor_tensors

    torch.manual_seed(0)
    teacher, knowing = ActorCritic(32), ActorCritic(32, physics=11, latent=5)
    knowing.start_from(teacher)
    rng = np.random.default_rng(0)
    seen, history = rng.standard_normal((6, OBSERVATIONS)), rng.standard_normal((6, HISTORY, SENSED))
    with torch.no_grad():
        x = torch.tensor(seen).float()
        alone = teacher.actor(x).numpy()
        told = knowing.actor(knowing.seen(x, torch.randn(6, 11))).numpy()
        np.testing.assert_allclose(told, alone, atol=1e-6)  # what the latent does is still to be learnt
        for parameter in knowing.actor.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
        latent = knowing.encoder(torch.tensor(history.reshape(6, -1)).float())
        expected = knowing.actor(torch.cat([x, latent], dim=-1)).numpy()
    np.testing.assert_allclose(PushNetwork(actor_tensors(knowing))(seen, history), expected, atol=1e-5)
    np.testing.assert_allclose(PushNetwork(actor_tensors(teacher))(seen, history), alone, atol=1e-5)


def test_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training import train_ppo
    from retorque.work.tensors import load_tensors

    settings = train_ppo.PpoTraining(steps=4 * 24, environments=6, horizon=4, width=8, out=tmp_path / "whole")
    train_ppo.CHECKPOINT, before = 2, train_ppo.CHECKPOINT
    try:
        whole = train_ppo.train(settings)
        stopped = replace(settings, out=tmp_path / "stopped")
        _stop_after(train_ppo, stopped, updates=3)  # one update after its last checkpoint
        again = train_ppo.train(stopped)
        one, other = (load_tensors(path, "push policy weights", 1)[0] for path in (whole, again))
    finally:
        train_ppo.CHECKPOINT = before
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value)
    lines = (stopped.out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [24, 48, 72, 96]
    with pytest.raises(RetorqueError, match="other settings"):
        train_ppo.train(replace(settings, seed=1001))


def _stop_after(module: ModuleType, settings: object, updates: int) -> None:
    """Train until so many updates were made, then die."""
    made = 0
    real = module.update

    def dying(*args: object) -> dict[str, float]:
        nonlocal made
        made += 1
        if made > updates:
            raise KeyboardInterrupt
        return real(*args)

    module.update = dying
    try:
        with pytest.raises(KeyboardInterrupt):
            module.train(settings)
    finally:
        module.update = real


def test_rma_learns_from_robots_that_differ(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training import train_ppo, train_rma

    teacher = train_ppo.train(
        train_ppo.PpoTraining(steps=24, environments=6, horizon=4, width=8, out=tmp_path / "teacher")
    )
    settings = train_rma.RmaTraining(
        steps=24, environments=6, horizon=4, width=8, history_updates=2, start=teacher, out=tmp_path / "rma"
    )
    network = load_push_network(train_rma.train(settings), PANDA)
    assert network.latent == 8
    physics = train_rma.HiddenPhysics(PANDA, 50, 1000)
    numbers = physics.numbers(physics.draw(3))
    assert numbers.shape == (50, physics.size) and 0.5 < numbers.std() < 2.0
    np.testing.assert_array_equal(numbers, physics.numbers(physics.draw(3)))
    assert np.abs(numbers - physics.numbers(physics.draw(4))).max() > 0.1
    with pytest.raises(RetorqueError, match="push policy weights"):
        train_rma.train(replace(settings, start=tmp_path / "rma" / "checkpoint.safetensors", out=tmp_path / "other"))
