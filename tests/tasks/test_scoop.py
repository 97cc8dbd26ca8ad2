"""Scooping: the script and its record, poses between poses, a person's keys, the diffusion policy and its training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import State
from retorque.tasks.scoop.diffusion_network import (
    DiffusionNetwork,
    DiffusionShape,
    kept_signal,
    load_diffusion,
    save_diffusion,
    step_embedding,
)
from retorque.tasks.scoop.diffusion_poses import CARRIED_OUT, MOST_STEP, DiffusionPoses
from retorque.tasks.scoop.hand_input import STEP, TURN, HandInput, terminal
from retorque.tasks.scoop.pose_numbers import numbers_pose, pose_numbers
from retorque.tasks.scoop.pose_source import InterpolatedPoses
from retorque.tasks.scoop.scoop_demonstrations import demonstrate
from retorque.tasks.scoop.scoop_frames import Frames, load_episodes, save_episodes
from retorque.tasks.scoop.scoop_task import BOWL, RADIUS, TABLE, ScoopSettings, ScoopTask, in_bowl
from retorque.tasks.scoop.scripted_scoop import BELOW, ScriptedScoop
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def _state(time: float) -> State:
    nothing = np.zeros((1, 6))
    return State(time, nothing, nothing, nothing)


@pytest.fixture(scope="module")
def task() -> ScoopTask:
    return ScoopTask(ScoopSettings(trials=1, seed=1000, duration=14.9))


@pytest.fixture(scope="module")
def episode(task: ScoopTask) -> Frames:
    episodes = demonstrate(task, ScriptedScoop(task.place, task.settings.seed))
    assert len(episodes) == 1  # the ball is in the bowl
    return episodes[0]


def test_compliance_finds_the_table_that_the_operator_leads_through(task: ScoopTask, episode: Frames) -> None:
    scraping = slice(40, 50)
    asked, went, was = (episode[name][scraping, 2] for name in ("x_des", "x_ref", "seen"))
    np.testing.assert_allclose(asked, TABLE - BELOW, atol=1e-9)
    assert np.abs(was - task.height[0]).max() < 0.003
    assert np.abs(went - task.height[0]).max() < 0.006
    assert episode["wrench"][scraping, 2].min() > 1.0  # it is felt
    assert np.abs(episode["wrench"][:10]).max() < 1.0  # the air is not


def test_episodes_come_back_and_torn_ones_do_not(episode: Frames, tmp_path: Path) -> None:
    file = save_episodes(tmp_path / "scoops.safetensors", [episode, episode], "arx_x5")
    found = load_episodes(file)
    assert len(found) == 2
    for name, value in episode.items():
        np.testing.assert_array_equal(found[1][name], value)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(RetorqueError):
        load_episodes(file)
    with pytest.raises(RetorqueError, match="at least one"):
        save_episodes(tmp_path / "none.safetensors", [], "arx_x5")
    short = {name: value[:5] if name == "x_ref" else value for name, value in episode.items()}
    with pytest.raises(RetorqueError, match="x_ref"):
        load_episodes(save_episodes(tmp_path / "short.safetensors", [short], "arx_x5"))


def test_a_ball_is_in_the_bowl_only_where_it_lies_in_it() -> None:
    height = np.array([TABLE, TABLE, TABLE, TABLE + 0.01])
    ball = np.array([[*BOWL, TABLE + RADIUS]] * 4)
    ball[1, 0] += 0.05  # beside it
    ball[2, 2] += 0.05  # still on the spoon
    ball[3, 2] += 0.01  # a higher table
    assert in_bowl(ball, height).tolist() == [True, False, False, True]


def test_poses_come_back_from_their_numbers() -> None:
    turn = np.stack([from_axis_angle((0.6, 0.0, 0.8), angle) for angle in (0.3, 3.0)])
    place = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 1.0]])
    back, rotation = numbers_pose(1.0 * pose_numbers(place, turn))
    np.testing.assert_allclose(back, place)
    np.testing.assert_allclose(rotation, turn, atol=1e-12)
    blurred = pose_numbers(place, turn) + 0.05 * np.random.default_rng(0).standard_normal((2, 9))
    _, rotation = numbers_pose(blurred)
    np.testing.assert_allclose(np.matmul(rotation, rotation.swapaxes(1, 2)), [np.eye(3)] * 2, atol=1e-12)


class Counting:
    """A source that moves 1 cm and turns 0.1 rad each time it is asked."""

    def reset(self, state: State) -> None:
        self.asked = 0

    def pose(self, state: State) -> tuple[Array, Array]:
        self.asked += 1
        return np.array([[0.01 * self.asked, 0.0, 0.0]]), from_axis_angle((0.0, 1.0, 0.0), 0.1 * self.asked)[None]


def test_ten_poses_a_second_become_a_straight_way_at_every_tick() -> None:
    source = Counting()
    poses = InterpolatedPoses(source, np.zeros((1, 3)), np.eye(3)[None], np.eye(6)[None], np.eye(6)[None])
    poses.reset(_state(5.0))
    for tick in range(11):
        action = poses.act(_state(5.0 + 0.02 * tick))
        np.testing.assert_allclose(action.position[0, 0], [0.002 * tick, 0.0, 0.0], atol=1e-6)
        np.testing.assert_allclose(action.rotation[0, 0], from_axis_angle((0, 1, 0), 0.02 * tick), atol=1e-5)
        assert action.velocity is not None
        np.testing.assert_allclose(action.velocity[0, 0], [0.1, 0.0, 0.0, 0.0, 1.0, 0.0], atol=1e-9)
    assert source.asked == 3


def test_keys_and_mouse_move_the_pose_and_nothing_else_does() -> None:
    typed = [b"wwa", b"\x1b[<0;10;5M\x1b[<32;12;4M", b"\x1b[<0;12;4m\x1b[<32;40;4M", b"\xff\x1b[zk", b"\x1b[<64;1;1Mex"]
    hand = HandInput(lambda: typed.pop(0), np.zeros(3), 0.25)
    hand.reset(_state(0.0))
    np.testing.assert_allclose(hand.pose(_state(0.0))[0], [[2 * STEP, STEP, 0.0]])
    before = hand.pose(_state(0.1))[0][0]  # two cells to the right, one up
    np.testing.assert_allclose(before, [2 * STEP + 0.004, STEP - 0.008, 0.0])
    for _ in range(2):  # let go, the mouse moves without effect; nonsense neither
        np.testing.assert_allclose(hand.pose(_state(0.2))[0][0], before)
    assert not hand.ended
    place, turn = hand.pose(_state(0.4))
    assert hand.ended and place[0, 2] == STEP
    np.testing.assert_allclose(turn[0], from_axis_angle((0.0, 1.0, 0.0), 0.25 + TURN), atol=1e-12)


def test_keys_need_a_terminal() -> None:
    with pytest.raises(RetorqueError, match="terminal"), terminal():
        pass


def test_noise_levels_and_their_embeddings() -> None:
    signal = kept_signal(100)
    assert signal[0] > 0.999 and signal[-1] < 0.001 and (np.diff(signal) < 0.0).all()
    rows = step_embedding(np.arange(100), 32)
    assert rows.shape == (100, 32) and np.abs(np.diff(rows, axis=0)).max(axis=1).min() > 0.1  # all told apart


def _tensors(shape: DiffusionShape) -> dict[str, Array]:
    scales = {"seen": shape.seen, "action": shape.actions}
    return {f"{n}_{what}": np.full(k, v) for n, k in scales.items() for what, v in (("middle", 0.5), ("scale", 2.0))}


def test_denoising_ends_at_what_the_noise_was_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = DiffusionShape()
    network, clean = DiffusionNetwork(_tensors(shape), shape), np.linspace(-0.9, 0.9, 270).reshape(30, 9)

    def noise(x: Array, level: Array, told: Array) -> Array:
        kept = kept_signal(shape.levels)[level][:, None, None]
        return (x - np.sqrt(kept) * clean) / np.sqrt(1.0 - kept)

    monkeypatch.setattr(network, "noise", noise)
    found = network(np.zeros((2, 11)), np.random.default_rng(0))
    np.testing.assert_allclose(found, [2.0 * clean + 0.5] * 2, atol=1e-5)


def test_numpy_and_pytorch_find_the_same_noise() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.scoop.training.diffusion_module import DiffusionUnet

    torch.manual_seed(0)
    shape = DiffusionShape(width=16, horizon=6)
    module = DiffusionUnet(shape, {name: torch.tensor(value) for name, value in _tensors(shape).items()})
    network = DiffusionNetwork({name: value.detach().numpy() for name, value in module.state_dict().items()}, shape)
    x, level, told = torch.randn(3, 6, 9), torch.tensor([0, 50, 99]), torch.randn(3, 11)
    with torch.no_grad():
        expected = module(x, level, told).numpy()
    np.testing.assert_allclose(network.noise(x.numpy(), level.numpy(), told.numpy()), expected, atol=1e-5)


class Eyes:
    """Sees the same always."""

    def look(self, state: State) -> Array:
        return pose_numbers(np.zeros((1, 3)), np.eye(3)[None])


class Chunks:
    """Chunks whose first number says which they are and how far in."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, seen: Array, rng: np.random.Generator) -> Array:
        self.asked += 1
        rows = np.tile(pose_numbers(np.zeros((1, 3)), np.eye(3)[None]), (1, 30, 1))
        rows[0, :, 0] = 0.01 * np.arange(30)
        if self.asked == 2:
            rows[:] = np.nan
        if self.asked == 3:
            rows[0, :, 0] = 9.0
        return rows


def test_chunks_are_carried_out_in_part_and_never_jump() -> None:
    network = Chunks()
    poses = DiffusionPoses(network, Eyes(), 0)  # type: ignore[arg-type]
    poses.reset(_state(0.0))
    places = [poses.pose(_state(0.1 * k))[0][0, 0] for k in range(3 * CARRIED_OUT)]
    assert network.asked == 3
    np.testing.assert_allclose(places[:CARRIED_OUT], 0.01 * np.arange(CARRIED_OUT), atol=1e-9)
    np.testing.assert_allclose(places[CARRIED_OUT : 2 * CARRIED_OUT], places[CARRIED_OUT - 1])  # not finite: stays
    np.testing.assert_allclose(np.diff(places[2 * CARRIED_OUT - 1 :]), MOST_STEP, atol=1e-9)


def _made_up(count: int) -> list[Frames]:
    rng = np.random.default_rng(0)
    widths = {"seen": 11, "x_des": 9, "x_ref": 9, "wrench": 6}
    return [{name: rng.standard_normal((20, k)).astype(np.float32) for name, k in widths.items()} for _ in range(count)]


def test_a_training_that_was_stopped_goes_on_as_if_it_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.scoop.training import train_diffusion
    from retorque.tasks.scoop.training.train_diffusion import DiffusionTraining, train

    data = save_episodes(tmp_path / "scoops.safetensors", _made_up(2), "arx_x5")
    monkeypatch.setattr(train_diffusion, "CHECKPOINT", 2)
    whole = DiffusionTraining(action="x_ref", data=data, steps=4, batch=8, width=8, out=tmp_path / "whole")
    straight = load_diffusion("x_ref", train(whole), Robot.load("arx_x5"))

    def dying(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    parts = DiffusionTraining(action="x_ref", data=data, steps=4, batch=8, width=8, out=tmp_path / "parts")
    with monkeypatch.context() as patch:
        real = train_diffusion.save_checkpoint
        patch.setattr(train_diffusion, "save_checkpoint", lambda *a, **k: (real(*a, **k), dying()))
        with pytest.raises(KeyboardInterrupt):
            train(parts)
    resumed = load_diffusion("x_ref", train(parts), Robot.load("arx_x5"))
    for name, value in straight._w.items():
        np.testing.assert_allclose(resumed._w[name], value, atol=1e-7)
    with pytest.raises(RetorqueError, match="cloned from x_ref"):
        load_diffusion("x_des", tmp_path / "whole" / "weights.safetensors")


@pytest.mark.parametrize("wrong", ({"action": "x"}, {"batch": 0}, {"steps": 0}, {"demonstrations": 0}, {"width": 2}))
def test_trainings_that_cannot_be_are_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.scoop.training.train_diffusion import DiffusionTraining, train

    with pytest.raises(RetorqueError):
        train(DiffusionTraining(out=tmp_path / "run", **wrong))  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_networks_of_another_robot_or_shape_are_refused(tmp_path: Path) -> None:
    shape = DiffusionShape(width=8)
    file = save_diffusion(tmp_path / "w.safetensors", _tensors(shape), shape, Robot.load("panda"), {"action": "x_des"})
    with pytest.raises(RetorqueError, match="panda"):
        load_diffusion("x_des", file, Robot.load("arx_x5"))
    with pytest.raises(RetorqueError, match="x_des, x_ref"):
        load_diffusion("x_dot", file)
