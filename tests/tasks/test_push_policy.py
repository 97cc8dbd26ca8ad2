"""The learnt push: alike from either side, within reach, trained where it stopped, and deaf to garbage."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_task import BoxTask
from retorque.tasks.push.push_choice import (
    NUMBERS,
    OBSERVATIONS,
    REACH,
    SENSED,
    SHIFT,
    SIDES,
    BoxView,
    sense,
    shifted,
    shifted_ends,
)
from retorque.tasks.push.push_model import load_push_model, save_push_model
from retorque.tasks.push.push_network import HISTORY, OUTPUTS, PushNetwork, load_push_network, save_push_network
from retorque.tasks.push.push_planner import HEIGHT, push_legs
from retorque.tasks.push.push_policy import NetworkPush
from retorque.tasks.push.pushes import LENGTH, OFFSET, TILT, Pushes, change_of, moved_box
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def _tensors(rng: np.random.Generator, latent: int = 0, width: int = 16) -> dict[str, np.ndarray]:
    def part(name: str, *sizes: int) -> dict[str, np.ndarray]:
        made = {}
        for k, (a, b) in enumerate(pairwise(sizes)):
            made[f"{name}.{2 * k}.weight"] = (rng.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32)
            made[f"{name}.{2 * k}.bias"] = np.zeros(b, dtype=np.float32)
        return made

    tensors = part("actor", OBSERVATIONS + latent, width, OUTPUTS)
    return tensors | (part("encoder", HISTORY * SENSED, width, latent) if latent else {})


def _mirrored(point: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Points (..., 2) on the other side of the box's x axis."""
    across = np.array([-np.sin(box[2]), np.cos(box[2])])
    return point - 2.0 * across * ((point - box[:2]) @ across)[..., None]


def test_a_push_to_the_left_looks_like_its_mirror_image_to_the_right() -> None:
    box, goal = np.array([0.5, 0.02, 0.3]), np.array([0.55, 0.06, 0.6])
    other = np.array([*_mirrored(goal[:2], box), 2.0 * box[2] - goal[2]])
    view = BoxView(np.stack([box, box]), np.stack([goal, other]))
    seen = view.observe()
    assert seen.shape == (2, OBSERVATIONS)
    world = slice(4, 8)  # where the world's axes are: these do tell the two apart
    np.testing.assert_allclose(np.delete(seen[0], np.r_[world]), np.delete(seen[1], np.r_[world]), atol=1e-9)
    assert np.abs(seen[0, world] - seen[1, world]).max() > 0.1
    rng = np.random.default_rng(0)
    numbers = rng.uniform(-1.0, 1.0, (1, SIDES, NUMBERS)).repeat(2, axis=0)
    pushes = view.pushes(numbers)
    boxes = np.broadcast_to(box, (2, SIDES, 3))
    for ends in pushes.ends(boxes):
        np.testing.assert_allclose(ends[1], _mirrored(ends[0], box), atol=1e-12)


def test_numbers_cover_all_pushes_and_no_others() -> None:
    task = BoxTask(PANDA, 50, 1000)
    start = task.start + np.array([0.1, 0.0, 0.0])  # so far out that some pushes are beyond reach
    view = BoxView(start, task.goal)
    rng = np.random.default_rng(1)
    numbers = 3.0 * rng.standard_normal((50, SIDES, NUMBERS))
    numbers[0, 0] = np.nan
    pushes = view.pushes(numbers)
    assert (np.sort(pushes.face, axis=-1) == np.arange(4)).all()
    assert np.abs(pushes.offset).max() == pytest.approx(OFFSET) and np.abs(pushes.tilt).max() == pytest.approx(TILT)
    assert (pushes.length.min(), pushes.length.max()) == pytest.approx(LENGTH)
    assert np.abs(shifted(numbers)).max() == pytest.approx(SHIFT) and not shifted(numbers)[0, 0].any()
    fine = view.reachable(pushes)
    box = np.broadcast_to(start[:, None], (50, SIDES, 3))
    away = np.stack([np.linalg.norm(end, axis=-1) for end in pushes.ends(box)])
    inside = ((away >= REACH[0]) & (away <= REACH[1])).all(axis=0)
    assert (fine == inside)[inside.any(axis=-1)].all() and fine.any(axis=-1).all() and not fine.all()
    far = BoxView(start + np.array([5.0, 0.0, 0.0]), task.goal)
    assert far.reachable(far.pushes(numbers)).all()  # nothing can be reached: nothing is ruled out


def test_the_goals_yaw_is_not_looked_at_where_it_does_not_count() -> None:
    box = np.array([[0.5, 0.0, 0.1]])
    one, two = (BoxView(box, np.array([[0.55, 0.0, yaw]]), any_yaw=True).observe() for yaw in (0.1, 0.9))
    np.testing.assert_array_equal(one, two)


def test_a_raised_push_is_higher_only_where_it_pushes() -> None:
    hand, first, last = np.array([[0.5, 0.0, 0.3]]), np.array([[0.4, 0.0]]), np.array([[0.45, 0.0]])
    usual, _ = push_legs(hand, first, last, np.array([0.05]))
    higher, _ = push_legs(hand, first, last, np.array([0.05]), up=np.array([0.03]))
    np.testing.assert_allclose((higher - usual)[0, :, 2], [0.0, 0.0, 0.0, 0.03, 0.03, 0.03, 0.0], atol=1e-12)
    assert usual[0, 3, 2] == HEIGHT


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
    with pytest.raises(RetorqueError, match=r"lack 'actor\.0\.bias'"):
        PushNetwork({name: value for name, value in good.items() if name != "actor.0.bias"})
    path = save_push_network(tmp_path / "p.safetensors", good, PANDA, {})
    assert load_push_network(path, PANDA).latent == 0
    with pytest.raises(RetorqueError, match="not for 'z1'"):
        load_push_network(path, Robot.load("z1"))
    model = save_push_model(tmp_path / "m.safetensors", {f"{k}.weight": np.eye(3, 7) for k in (0, 2, 4)}, PANDA, {})
    with pytest.raises(RetorqueError, match="push policy weights"):
        load_push_network(model, PANDA)
    with pytest.raises(RetorqueError, match="push model weights"):
        make_policy(make_task("push", PANDA, 1, 0), "planner", path)


def test_the_policy_on_board_brings_imagined_boxes_to_their_goals() -> None:
    task = BoxTask(PANDA, 100, 1000)
    policy = make_policy(task, "ppo")
    assert isinstance(policy, NetworkPush)
    model, box, history = load_push_model(), task.start, np.zeros((100, HISTORY, SENSED))
    for _ in range(5):
        view = BoxView(box, task.goal)
        preference, numbers = policy.network(view.observe(), history)
        options = view.pushes(numbers)
        best = np.argmax(np.where(view.reachable(options), preference, -np.inf), axis=-1)
        near = np.hypot(np.linalg.norm(box[:, :2] - task.goal[:, :2], axis=-1), 0.11 * (box - task.goal)[:, 2]) < 0.02
        box = np.where(near[:, None], box, moved_box(box, model(options.take(best))))
    apart = np.linalg.norm(box[:, :2] - task.goal[:, :2], axis=-1)
    assert np.mean((apart < 0.03) & (np.abs((box - task.goal)[:, 2]) < np.deg2rad(15.0))) > 0.9


def test_what_became_of_pushes_is_remembered_and_garbage_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task("push", PANDA, 3, 1000)
    assert isinstance(task, BoxTask)
    target = task.target(Robots.ideal(PANDA, 3))
    network = PushNetwork(_tensors(np.random.default_rng(1), latent=4))
    assert network.latent == 4
    policy = NetworkPush(PANDA, task.goal, network)
    state = target.read()
    policy.reset(state)
    assert state.objects is not None
    state.time = 5.0
    told = policy.act(state)  # the first pushes begin
    np.testing.assert_allclose(told.position, policy._legs.at(5.0).position)
    assert not policy._history.any()
    state.time, state.objects = 15.0, state.objects.copy()
    state.objects[0, 0, 0] += 0.03
    state.objects[2] = np.nan
    policy.act(state)
    assert policy._history[:2, -1].any(axis=-1).all() and not policy._history[:, 0].any()
    assert not policy._history[2].any()  # a box that is not seen became nothing
    change = policy._history[0, -1, 3:6] * [0.05, 0.05, 0.5]
    assert np.linalg.norm(change[:2]) == pytest.approx(0.03, abs=1e-9)
    monkeypatch.setattr(policy, "network", lambda *_: (np.full((3, 4), np.nan), np.full((3, 4, NUMBERS), np.nan)))
    state.time = 25.0
    state.objects[:] = target.objects
    assert np.isfinite(policy.act(state).position).all()
    state.objects[:] = np.nan
    policy.reset(state)
    assert np.isfinite(policy.act(state).position).all()
    still = Pushes(*(np.zeros(2, dtype=kind) for kind in (int, float, float, float)))
    lost = sense(np.full((2, 3), np.nan), np.zeros((2, 3)), still, np.zeros((2, 3)), np.zeros((2, 7)))
    assert lost.shape == (2, SENSED) and np.isfinite(lost).all()


def test_advantages_by_hand() -> None:
    torch = pytest.importorskip("torch")
    from retorque.learn.policy_gradient import generalised_advantages

    def column(*values: float) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32)[:, None]

    found = generalised_advantages(
        reward=column(1, 2, 4),
        value=column(0.5, 1.0, 2.0),
        after=column(1.0, 9.0, 3.0),
        lost=column(0, 1, 0),
        cut=column(0, 1, 1),
        discount=0.5,
        trace=0.5,
    )[:, 0].tolist()
    # The third is cut by time, so its value after counts; the second is over for good, so nothing follows it.
    assert found == pytest.approx([1.0 + 0.5 - 0.5 + 0.25 * 1.0, 2.0 - 1.0, 4.0 + 1.5 - 2.0])


def test_the_probability_of_a_choice_is_that_of_its_side_and_its_numbers() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.training.actor_critic import Choice

    choice = Choice(torch.tensor([[0.0, 1.0, 2.0, 9.0]]), torch.zeros(1, 4, NUMBERS), torch.full((NUMBERS,), 0.5))
    fine = torch.tensor([[True, True, True, False]])
    numbers = torch.zeros(1, 4, NUMBERS)
    numbers[0, 0] = 7.0  # of a side that was not chosen: it has no say
    found, _ = choice.log_probability(torch.tensor([2]), numbers, fine)
    side = 2.0 - np.log(np.exp(0.0) + np.exp(1.0) + np.exp(2.0))
    assert float(found) == pytest.approx(side - NUMBERS * np.log(0.5 * np.sqrt(2.0 * np.pi)), abs=1e-5)


def test_numpy_and_pytorch_choose_alike_and_a_teacher_is_taken_over() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.push.training.actor_critic import ActorCritic
    from retorque.tasks.push.training.train_ppo import learnt_tensors

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
    for network, wanted in ((knowing, expected), (teacher, alone)):
        preference, numbers = PushNetwork(learnt_tensors(network))(seen, history)
        np.testing.assert_allclose(preference, wanted[:, :SIDES], atol=1e-5)
        np.testing.assert_allclose(numbers.reshape(6, -1), wanted[:, SIDES:], atol=1e-5)


def test_the_engine_pushes_as_the_forward_model_says() -> None:
    from retorque.tasks.push.training.push_worlds import SimulatedPushes
    from retorque.tasks.push.training.sagging_pushes import SaggingPushes

    count = 16
    task, model = BoxTask(PANDA, count, 1000), load_push_model()
    pushes = Pushes.sample((count,), np.random.default_rng(0))
    pushes = replace(pushes, offset=0.3 * pushes.offset)  # near the middle, where the model is good
    after, sensed = SimulatedPushes(PANDA, Robots.ideal(PANDA, count)).push(task.start, pushes, np.zeros((count, 3)))
    ideal = Parameters.ideal(PANDA, count)
    imagined, felt = SaggingPushes(PANDA, model, ideal, 0).push(task.start, pushes, np.zeros((count, 3)))
    assert np.median(np.linalg.norm((after - imagined)[:, :2], axis=-1)) < 0.012
    for lag in (sensed[:, :3], felt[:, :3]):
        assert np.abs(lag * 0.05).max() < 0.05  # the hand is near where it was told to be
    np.testing.assert_allclose(sensed[:, 3:6] * [0.05, 0.05, 0.5], change_of(task.start, after), atol=1e-9)
    missed, _ = SimulatedPushes(PANDA, Robots.ideal(PANDA, count)).push(
        task.start, pushes, np.tile([0.0, 0.0, 0.08], (count, 1))
    )
    np.testing.assert_allclose(missed, task.start, atol=0.02)  # over the box


def test_imagined_hands_sag_under_a_payload_and_a_shift_makes_up_for_it() -> None:
    from retorque.tasks.push.training.sagging_pushes import SaggingPushes

    count = 40
    task, model = BoxTask(PANDA, count, 1000), load_push_model()
    pushes = Pushes.sample((count,), np.random.default_rng(0))
    pushes = replace(pushes, offset=0.3 * pushes.offset, length=np.full(count, 0.08), tilt=0.2 * pushes.tilt)
    laden = Parameters.ideal(PANDA, count).with_payload(np.full(count, 0.6))
    world = SaggingPushes(PANDA, model, laden, 0)
    sag = world._sag.mean(axis=0)
    assert sag[2] == pytest.approx(-0.6 * 9.81 / 200.0, rel=0.2) and np.abs(sag[:2]).max() < 0.02  # W / K
    light = SaggingPushes(PANDA, model, Parameters.ideal(PANDA, count), 0)
    wanted, _ = light.push(task.start, pushes, np.zeros((count, 3)))
    made_up, felt = world.push(task.start, pushes, -np.tile(sag, (count, 1)))
    assert np.median(np.linalg.norm((made_up - wanted)[:, :2], axis=-1)) < 0.012
    np.testing.assert_allclose(felt[:, :3].mean(axis=0) * 0.05, sag, atol=4e-3)
    heavy = SaggingPushes(PANDA, model, laden.with_payload(np.full(count, 5.0)), 0)
    dragged, low = heavy.push(task.start, pushes, np.zeros((count, 3)))
    assert (low[:, 2] * 0.05 >= -0.0551).all()  # the table holds the hand
    moved = [np.linalg.norm((x - task.start)[:, :2], axis=-1).mean() for x in (dragged, wanted)]
    assert moved[0] < 0.8 * moved[1]
    beside, _ = light.push(task.start, pushes, np.tile([0.0, 0.0, 0.05], (count, 1)))
    np.testing.assert_array_equal(beside, task.start)  # over the box


def test_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training import train_ppo
    from retorque.work.tensors import load_tensors

    # The second imagined update overshoots by more than the steps on the engine, which must be made all the same.
    settings = train_ppo.PpoTraining(imagined=40, steps=20, environments=8, horizon=4, width=8, out=tmp_path / "whole")
    stopped = replace(settings, out=tmp_path / "stopped")
    train_ppo.CHECKPOINT, before = 2, train_ppo.CHECKPOINT
    try:
        whole = train_ppo.train(settings)
        _stop_after(train_ppo, stopped, updates=1)  # one update after its last checkpoint
        again = train_ppo.train(stopped)
    finally:
        train_ppo.CHECKPOINT = before
    one, other = (load_tensors(path, "push policy weights", 1)[0] for path in (whole, again))
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value)
    lines = (stopped.out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [32, 64, 96]
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


def test_imagined_pushes_are_learnt_from(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training.train_push import PushTeacher, train

    settings = PushTeacher(
        method="ppo", imagined=20_000, steps=1, environments=64, place_only=True, width=64, out=tmp_path / "run"
    )
    train(settings)
    points = [json.loads(line) for line in (settings.out / "metrics.jsonl").read_text().splitlines()]
    assert points[-1]["success"] > 0.7 > points[0]["success"] + 0.1


def test_rma_learns_from_robots_that_differ(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.push.training import train_ppo, train_rma

    small = train_ppo.PpoTraining(imagined=64, steps=1, environments=8, horizon=2, width=8, out=tmp_path / "teacher")
    teacher = train_ppo.train(small)
    settings = train_rma.RmaTraining(
        imagined=32,
        steps=16,
        environments=8,
        horizon=2,
        width=8,
        history_updates=2,
        engine_updates=1,
        start=teacher,
        out=tmp_path / "rma",
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


def test_a_hand_that_does_not_sag_never_begins_nearer_to_the_box_than_meant() -> None:
    task, rng = BoxTask(PANDA, 30, 1000), np.random.default_rng(0)
    pushes, shift = Pushes.sample((30,), rng), rng.uniform(-SHIFT, SHIFT, (30, 3))
    first, last = pushes.ends(task.start)
    direction = (last - first) / np.linalg.norm(last - first, axis=-1, keepdims=True)
    ahead = np.sum(shift[:, :2] * direction, axis=-1)
    for sags in (True, False):
        begin, end = shifted_ends(pushes, task.start, shift, sags=sags)
        np.testing.assert_allclose(end, last + shift[:, :2])
        moved = np.sum((begin - first) * direction, axis=-1)
        np.testing.assert_allclose(moved, ahead if sags else np.minimum(ahead, 0.0), atol=1e-12)
        aside = (begin - first) - moved[:, None] * direction
        np.testing.assert_allclose(aside, shift[:, :2] - ahead[:, None] * direction, atol=1e-12)
