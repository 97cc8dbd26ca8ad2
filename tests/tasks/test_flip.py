"""Flipping: the script on ideal robots, the data set and back, ACT in NumPy and in PyTorch, training that resumes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.flip.act_network import BY_PICTURES, ON_BOARD, ActNetwork, ActShape, load_act, save_act
from retorque.tasks.flip.act_policy import ActPolicy
from retorque.tasks.flip.demonstrations import Episode, record_demonstrations
from retorque.tasks.flip.flip_task import FlipTask, far_face_down
from retorque.tasks.flip.gripper import CLOSED, FINGERS, OPEN, with_gripper
from retorque.tasks.flip.image_column import IMAGES
from retorque.tasks.flip.lerobot import TASK, read_dataset, write_dataset
from retorque.tasks.flip.scripted_flip import ScriptedFlip
from retorque.tasks.policy_task import Robots, play
from retorque.tasks.push.push_model import ON_BOARD as PUSH_MODEL
from retorque.tasks.sight import open_eyes
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def test_the_script_flips_cubes_on_the_ideal_robot() -> None:
    task = FlipTask(PANDA, 20, 1000)
    target = task.target(Robots.ideal(task.robot, 20))
    assert _width(target) == pytest.approx(OPEN, abs=1e-6)
    scores = play(task, target, ScriptedFlip(PANDA))
    assert scores.sum() >= 19
    assert _width(target) == pytest.approx(CLOSED, abs=1e-4)


def _width(target: Target) -> float:
    """Between the first robot's fingertips, which are 9.5 mm wide themselves [m]."""
    _, data = target.snapshot()
    left, right = (data.body(name).xpos for name in FINGERS)
    return float(np.linalg.norm(left - right)) - 0.0095


def test_closed_fingers_are_the_cards_fingertips_and_weigh_what_it_says() -> None:
    robot, fingers = with_gripper(PANDA)
    assert [len(link.geoms) for link in robot.links][-1] == len(PANDA.links[-1].geoms) - 1
    for link, before in zip(robot.links, PANDA.links, strict=True):
        assert (link.mass, link.centre, link.inertia) == (before.mass, before.centre, before.inertia)
    tips = PANDA.links[-1].geoms[-1]
    assert 2.0 * fingers[0].size[1] == pytest.approx(tips.size[1]) and fingers[0].size[2] == tips.size[2]
    middle = np.mean([finger.position for finger in fingers], axis=0)
    np.testing.assert_allclose(middle, [0.0, 0.0, tips.position[2] - PANDA.end_effector.position[2]], atol=1e-6)
    with pytest.raises(RetorqueError, match="no box of closed fingertips"):
        with_gripper(Robot.load("z1"))


def test_the_far_face_is_down_after_a_quarter_turn_about_y_only() -> None:
    def cube(*angles: float) -> np.ndarray:
        quaternion = Rotation.from_euler("xyz", angles).as_quat(scalar_first=True)
        return np.concatenate([np.zeros(3), quaternion, np.zeros(6)])

    quarter = np.pi / 2.0
    assert far_face_down(cube(0.0, quarter, 0.0))
    assert far_face_down(cube(0.0, quarter + 0.1, 0.3))
    for other in ((0.0, 0.0, 0.0), (0.0, -quarter, 0.0), (quarter, 0.0, 0.0), (0.0, 0.6, 0.0)):
        assert not far_face_down(cube(*other))


def _episodes(count: int) -> list[Episode]:
    rng = np.random.default_rng(0)
    return [
        Episode(rng.normal(size=(12 + k, 7)), rng.normal(size=(12 + k, 7)), rng.normal(size=(12 + k, 8)))
        for k in range(count)
    ]


def test_a_data_set_comes_back_and_has_what_lerobot_looks_for(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    episodes = _episodes(3)
    folder = write_dataset(tmp_path / "set", episodes, "panda")
    for one, other in zip(read_dataset(folder), episodes, strict=True):
        for name in ("joints", "cube", "action"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-6)
    info = json.loads((folder / "meta" / "info.json").read_text())
    assert info["codebase_version"] == "v3.0" and info["total_episodes"] == 3 and info["total_frames"] == 39
    rows = pq.read_table(folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pylist()
    assert [row["dataset_from_index"] for row in rows] == [0, 12, 25]
    assert [row["dataset_to_index"] for row in rows] == [12, 25, 39] and rows[0]["tasks"] == [TASK]
    stats = json.loads((folder / "meta" / "stats.json").read_text())
    together = np.concatenate([episode.action for episode in episodes])
    np.testing.assert_allclose(stats["action"]["mean"], together.mean(axis=0), atol=1e-6)
    tasks = pq.read_table(folder / "meta" / "tasks.parquet")
    assert tasks.to_pylist() == [{"task_index": 0, "__index_level_0__": TASK}]
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["__index_level_0__"]
    data = pq.read_table(folder / "data" / "chunk-000" / "file-000.parquet")
    np.testing.assert_allclose(data["timestamp"].to_numpy()[:13], [*np.arange(12) / 20.0, 0.0], atol=1e-6)


def test_broken_and_foreign_data_sets_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    folder = write_dataset(tmp_path / "set", _episodes(2), "panda")
    with pytest.raises(RetorqueError, match="exists already"):
        write_dataset(folder, _episodes(1), "panda")
    with pytest.raises(RetorqueError, match="at least one"):
        write_dataset(tmp_path / "none", [], "panda")
    assert not (tmp_path / "none").exists()
    info = folder / "meta" / "info.json"
    text = info.read_text()
    for wrong, sentence in (
        (text.replace("v3.0", "v2.1"), "v2.1"),
        (text.replace('"fps": 20', '"fps": 30'), "30 frames"),
    ):
        info.write_text(wrong)
        with pytest.raises(RetorqueError, match=sentence):
            read_dataset(folder)
    info.write_text(text[: len(text) // 2])
    with pytest.raises(RetorqueError, match="not an intact"):
        read_dataset(folder)
    info.write_text(text)
    table = folder / "data" / "chunk-000" / "file-000.parquet"
    table.write_bytes(table.read_bytes()[:-40])
    with pytest.raises(RetorqueError, match="not an intact"):
        read_dataset(folder)


def test_pictures_come_back_to_the_bit_with_statistics_as_lerobot_has_them(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(1)
    episodes = [
        replace(episode, pictures=rng.integers(0, 256, (len(episode.action), 6, 8, 3), dtype=np.uint8))
        for episode in _episodes(2)
    ]
    folder = write_dataset(tmp_path / "set", episodes, "panda")
    for one, other in zip(read_dataset(folder), episodes, strict=True):
        np.testing.assert_array_equal(one.pictures, other.pictures)
    info = json.loads((folder / "meta" / "info.json").read_text())
    assert info["features"][IMAGES] == {"dtype": "image", "shape": [6, 8, 3], "names": ["height", "width", "channels"]}
    stats = json.loads((folder / "meta" / "stats.json").read_text())[IMAGES]
    together = np.concatenate([episode.pictures for episode in episodes]) / 255.0
    np.testing.assert_allclose(np.array(stats["std"])[:, 0, 0], together.std(axis=(0, 1, 2)), rtol=1e-6)
    assert np.shape(stats["mean"]) == (3, 1, 1) and stats["count"] == [25]
    table = folder / "data" / "chunk-000" / "file-000.parquet"
    row = pq.read_table(table)[IMAGES][3].as_py()
    assert row["bytes"][:4] == b"\x89PNG" and row["path"] is None
    rows = pq.read_table(folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pylist()
    assert np.shape(rows[1][f"stats/{IMAGES}/max"]) == (3, 1, 1)


def test_numpy_and_pytorch_predict_the_same_chunks() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.flip.training.act_module import Act

    torch.manual_seed(0)
    shape = ActShape(chunk=9, width=32)
    names = (("joint", 7), ("cube", 7), ("action", 8))
    scales = {f"{n}_mean": torch.randn(k) for n, k in names} | {f"{n}_scale": torch.rand(k) + 0.5 for n, k in names}
    module = Act(shape, scales)
    network = ActNetwork({name: value.detach().numpy() for name, value in module.state_dict().items()}, shape)
    rng = np.random.default_rng(0)
    joints, cube = rng.normal(size=(5, 7)), rng.normal(size=(5, 7))
    with torch.no_grad():
        q, c = module.normal(torch.tensor(joints).float(), torch.tensor(cube).float())
        expected = module(q, c, torch.zeros(5, shape.latent)) * scales["action_scale"] + scales["action_mean"]
    np.testing.assert_allclose(network(joints, cube), expected.numpy(), atol=1e-4)


def test_numpy_and_pytorch_make_the_same_of_pictures() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.flip.training.act_module import Act

    torch.manual_seed(0)
    shape = ActShape(chunk=5, width=16, picture_height=24, picture_width=33)
    assert shape.tokens == 2 + 2 * 3
    names = (("joint", 7), ("cube", 7), ("action", 8))
    scales = {f"{n}_mean": torch.randn(k) for n, k in names} | {f"{n}_scale": torch.rand(k) + 0.5 for n, k in names}
    module = Act(shape, scales)
    network = ActNetwork({name: value.detach().numpy() for name, value in module.state_dict().items()}, shape)
    rng = np.random.default_rng(0)
    joints, pictures = rng.normal(size=(4, 7)), rng.integers(0, 256, (4, 24, 33, 3), dtype=np.uint8)
    with torch.no_grad():
        q, _ = module.normal(torch.tensor(joints).float(), torch.zeros(4, 7))
        looked = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1.0
        chunk, pose = module.both(q, looked, torch.zeros(4, shape.latent))
    assert pose is not None and pose.shape == (4, 7)
    np.testing.assert_allclose(
        network(joints, pictures), (chunk * scales["action_scale"] + scales["action_mean"]).numpy(), atol=1e-4
    )


class Constant:
    """A network whose chunks say when they were made."""

    shape = ActShape(chunk=4)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, joints: np.ndarray, cube: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.full((len(joints), 4, 8), 0.1 * self.calls)


def test_overlapping_chunks_are_averaged_oldest_first_and_garbage_holds_the_pose() -> None:
    free = replace(PANDA, links=PANDA.links)
    policy = ActPolicy(free, Constant())
    state = State(0.0, np.tile(PANDA.home, (2, 1)), np.zeros((2, 7)), np.zeros((2, 7)), objects=np.zeros((2, 1, 13)))
    policy.reset(state)
    weight = np.exp(-0.01 * np.arange(4))
    for calls in range(1, 7):
        told = policy.act(state).position[0, 0]
        recent = 0.1 * np.arange(max(1, calls - 3), calls + 1)  # oldest first
        assert told == pytest.approx(np.average(recent, weights=weight[: len(recent)]))
    policy.network = lambda joints, cube: np.full((2, 4, 8), np.nan)
    policy.network.shape = ActShape(chunk=4)
    policy.reset(state)
    told = policy.act(state)
    np.testing.assert_allclose(told.position, np.tile(PANDA.home, (2, 1)))
    assert told.gripper is not None and np.isnan(told.gripper).all()  # which no finger hears
    policy.network = lambda joints, cube: np.full((2, 4, 8), 5.0)
    policy.network.shape = ActShape(chunk=4)
    policy.reset(state)
    np.testing.assert_array_equal(policy.act(state).gripper, [OPEN, OPEN])


def test_an_act_that_sees_pictures_needs_a_camera_and_its_own_name(tmp_path: Path) -> None:
    task = make_task("flip", PANDA, 1, 0)
    policy = make_policy(task, "act-image")
    state = State(0.0, PANDA.home[None], np.zeros((1, 7)), np.zeros((1, 7)), objects=np.zeros((1, 1, 13)))
    with pytest.raises(RetorqueError, match="has no camera"):
        policy.reset(state)
    for name, weights in (("act", BY_PICTURES), ("act-image", ON_BOARD)):
        with pytest.raises(RetorqueError, match="made for the policy"):
            make_policy(task, name, weights)
    open_eyes(policy, task.target(Robots.ideal(task.robot, 1)), 0)
    policy.reset(state)
    told = policy.act(state)
    assert told.position.shape == (1, 7) and np.abs(told.position - PANDA.home).max() < 0.1
    assert told.gripper is not None and CLOSED <= told.gripper[0] < 0.01  # it closes at once


def test_training_goes_on_where_it_stopped_and_its_weights_act(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    from retorque.tasks.flip.training import train_act

    settings = train_act.FlipTraining(demonstrations=2, steps=8, batch=8, width=16, chunk=5, out=tmp_path / "run")
    train_act.CHECKPOINT, before = 4, train_act.CHECKPOINT
    try:
        whole = load_act(train_act.train(settings))
        (settings.out / "weights.safetensors").unlink()
        again = load_act(train_act.train(settings))  # from the last checkpoint
    finally:
        train_act.CHECKPOINT = before
    for name, value in whole._w.items():
        np.testing.assert_allclose(again._w[name], value, atol=1e-6)
    with pytest.raises(RetorqueError, match=r"other settings \(seed\)"):
        train_act.train(replace(settings, seed=1001))
    task = make_task("flip", PANDA, 2, 0)
    policy = make_policy(task, "act", settings.out / "weights.safetensors")
    target = task.target(Robots.ideal(PANDA, 2))
    state = target.read()
    policy.reset(state)
    assert policy.act(state).position.shape == (2, 7)


def test_no_success_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlipTask, "duration", 0.2)
    with pytest.raises(RetorqueError, match="none of 2"):
        record_demonstrations(PANDA, 2, 0)


def test_weights_of_another_robot_or_task_are_refused(tmp_path: Path) -> None:
    network = load_act()
    tensors = {name: value for name, value in network._w.items() if name.startswith("head")}
    other = save_act(tmp_path / "z1.safetensors", tensors, network.shape, Robot.load("z1"), {})
    with pytest.raises(RetorqueError, match="made for robot 'z1'"):
        make_policy(make_task("flip", PANDA, 1, 0), "act", other)
    with pytest.raises(RetorqueError, match="flip ACT weights"):
        make_policy(make_task("flip", PANDA, 1, 0), "act", PUSH_MODEL)


def test_a_recording_that_was_interrupted_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from retorque.tasks.flip import lerobot

    real = lerobot._write

    def dying(folder: Path, episodes: list[Episode], robot: str) -> None:
        real(folder, episodes[:1], robot)
        raise KeyboardInterrupt

    monkeypatch.setattr(lerobot, "_write", dying)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(tmp_path / "set", _episodes(2), "panda")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert len(read_dataset(write_dataset(tmp_path / "set", _episodes(2), "panda"))) == 2


def test_a_cube_out_of_reach_is_reached_for_and_nothing_breaks() -> None:
    task = FlipTask(PANDA, 2, 1000)
    task.place[0] = 3.0, 0.0
    state = task.target(Robots.ideal(PANDA, 2)).read()
    script = ScriptedFlip(PANDA)
    script.reset(state)
    for time in (0.0, 3.0, 100.0):
        state.time = time
        told = script.act(state).position
        assert np.isfinite(told).all() and (told >= PANDA.lower).all() and (told <= PANDA.upper).all()
