"""The benches of the learned models at a tiny scale, from recording to table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

pytest.importorskip("torch")

from retorque.bench.models import identification, impedance_tracking, inverse_dynamics, joint_learning
from retorque.bench.models.tracking_by_joint import PAPER_JOINTS
from retorque.control.action import JointAction
from retorque.identify.hybrid import motion_tracking
from retorque.identify.hybrid.model_set import build
from retorque.identify.hybrid.streaming import StreamingModel
from retorque.identify.methods.adam_regression import AdamRegression, plain_program
from retorque.logs.motion import Motion
from retorque.physics.inertia import pseudo_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

SCALE = 0.002


def here(function: Callable[..., object], jobs: list[tuple[object, ...]], *_: object) -> list[object]:
    """Jobs without processes, each of which would import PyTorch again."""
    return [function(*job) for job in jobs]


def test_identification(tmp_path: Path) -> None:
    methods = ("sdp", "diffbary", "delan", "sdp (ours)", "diffnea (ours)")
    report = identification.run(
        identification.Settings(methods=methods, scale=SCALE, trials=1, thin=5, epochs=2, workers=1)
    )
    assert [row.method for row in report.rows[::3]] == list(methods) and set(methods) < set(
        identification.Settings().methods
    )
    assert {row.metric for row in report.rows} == {"train NMSE", "validation NMSE", "test NMSE"}
    loss = {row.method: row.mean for row in report.rows if row.metric == "train NMSE"}
    assert loss["diffnea (ours)"] <= 1.02 * loss["sdp (ours)"]
    assert loss["sdp"] <= 1.001 * loss["diffbary"]  # the program finds the best that the paper's links can do
    report.save(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["rows"][0]["paper"] == 0.0070


def test_adam_from_random_links_comes_near_the_program() -> None:
    robot, rng = Robot.load("z1"), np.random.default_rng(0)
    w = rng.uniform(0.5, 4.0, (6, 3))
    angle = w * (0.02 * np.arange(1000)[:, None, None]) + rng.uniform(0.0, 6.0, w.shape)
    size = rng.uniform(0.2, 0.6, w.shape) / w
    q, qd, qdd = (
        np.sum(x, axis=-1) for x in (size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle))
    )
    body = RigidBody(robot)
    torque = body.inverse_dynamics(q, qd, qdd) + rng.normal(0.0, 0.2, q.shape)
    motion, span = Motion.of(q, qd, qdd, torque), np.ptp(torque, axis=0)
    rows = body.regressor(q, qd, qdd)

    def loss(links: np.ndarray) -> float:
        assert np.all(np.linalg.eigvalsh(pseudo_inertia(links)) > 0.0)
        return float(np.mean(np.square((rows @ links.ravel() - torque) / span)))

    best = loss(plain_program(motion, robot, span)[0])
    for chart in ("diffbary", "diffnea"):
        short = loss(AdamRegression(chart=chart, epochs=10).fit(motion, robot, span))
        found = loss(AdamRegression(chart=chart, rate=0.02, epochs=600).fit(motion, robot, span))
        assert 0.999 * best < found < 1.5 * best < short


def test_table_two_and_three_share_their_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bench in (inverse_dynamics, impedance_tracking):
        monkeypatch.setattr(bench, "run_jobs", here)
    picture = tmp_path / "joints.png"
    settings = inverse_dynamics.Settings(scale=SCALE, epochs=2, folder=tmp_path, threads=1, picture=picture)
    report = inverse_dynamics.run(settings)
    assert picture.read_bytes().startswith(b"\x89PNG")
    joints = [row.extra["joints"] for row in report.rows if row.metric == "test NMSE"]
    means = [row.mean for row in report.rows if row.metric == "test NMSE"]
    np.testing.assert_allclose(np.mean(joints, axis=(1, 2)), means)
    assert {row.method for row in report.rows} == {f"{name} (ours)" for name in inverse_dynamics.PAPER}
    assert all(np.isfinite(row.mean) and row.mean > 0.0 for row in report.rows)
    files = sorted(path.name for path in (tmp_path / "stand-in-0" / "trial-0").glob("*.safetensors"))
    assert len(files) == 9
    again = inverse_dynamics.run(settings)
    assert [row.mean for row in again.rows] == [row.mean for row in report.rows]
    for speed in motion_tracking.DURATIONS:
        monkeypatch.setitem(motion_tracking.DURATIONS, speed, 0.05)
    tracking = impedance_tracking.Settings(scale=SCALE, epochs=2, folder=tmp_path, threads=1, routes=1)
    rows = impedance_tracking.run(tracking).rows
    assert len(rows) == 9 * 3 * 2
    assert all(np.isfinite(row.mean) for row in rows)
    with pytest.raises(RetorqueError, match="other settings"):
        inverse_dynamics.run(inverse_dynamics.Settings(scale=SCALE, epochs=3, folder=tmp_path, threads=1))


def test_the_published_models_are_the_papers() -> None:
    told: list[str] = []
    training = inverse_dynamics.Settings(published=True, epochs=1, threads=1).training(5)
    assert training.batch == 1000 and training.blur == training.thrift == training.decay == 0.0 and not training.settle
    assert [training.fallen(epoch) for epoch in (0.0, 29.9, 30.0)] == [1.0, 1.0, 0.1]
    robot = Robot.load("panda")
    models = build(robot, scale=SCALE, seed=1000, training=training, progress=lambda label, _: told.append(label))
    assert set(models) == set(inverse_dynamics.PAPER)
    for name, model in models.items():
        shape = model.header["shape"]
        assert shape["stride"] == 1 and not shape["separate"] and not shape["rotors"]
        assert all(np.isfinite(loss) for loss in model.nmse.values())
        if shape["rigid"]:
            assert not np.any(model.arrays["rigid.armature"]), name
    weights = models["RBD+Sign+LSTM 2S"].arrays
    count = sum(value.size for key, value in weights.items() if key.startswith("network."))
    assert count == 33358  # Table IV
    assert sum(v.size for k, v in models["RBD+Sign+MLP 2S"].arrays.items() if k.startswith("network.")) == 46008
    assert np.all(weights["network.inward.weight"] != 0.0)  # nothing is masked
    assert models["RBD+Sign 2S"].nmse["train"] <= models["RBD 2S"].nmse["train"]


def test_the_papers_joints_average_to_its_table_three() -> None:
    for name, gains in impedance_tracking.PAPER.items():
        for gain, both in gains.items():
            if (name, gain) in {("RBD+Sign E2E", "stiff"), ("RBD+Sign 2S", "stiff"), ("RBD 2S", "soft")}:
                continue  # the two tables differ there
            for metric, published in zip(impedance_tracking.METRICS, both, strict=True):
                assert np.isclose(np.mean(PAPER_JOINTS[metric][name][gain]), published, rtol=0.02), (name, gain, metric)


def test_failed_runs_are_counted_and_not_averaged() -> None:
    error = np.ones((2, 9, 3, 2, 7))
    error[:, 0, 0, 1] = 100.0
    stopped = np.zeros((9, 3, 2), dtype=bool)
    stopped[0, 0, 1] = stopped[8] = True
    tracked = impedance_tracking.Tracked(error, stopped)
    by_joint = impedance_tracking._report(impedance_tracking.Settings(by_joint=True), tracked).rows
    assert len(by_joint) == 9 * 3 * 2 * 7 and by_joint[0].mean == 1.0
    published = {row.metric: row.paper for row in by_joint if row.method == "RBD+LSTM 2S (ours)"}
    assert published["joint RMSE, stiff, joint 5"] == 9.278 and published["joint RMSE, soft, joint 5"] is None
    report = impedance_tracking._report(impedance_tracking.Settings(), tracked)
    first = report.rows[0]
    assert first.mean == 1.0 and first.trials == 1 and first.extra["failed"] == 0.5
    assert np.isnan(report.rows[-1].mean) and "LSTM E2E at stiff gains (100% of the runs)" in report.notes


def test_a_rigid_body_is_learnt_beside_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_learning, "run_jobs", here)
    picture = tmp_path / "curves.png"
    settings = joint_learning.Settings(scale=1e-3, trials=1, epochs=3, batch=2, threads=1, picture=picture)
    report = joint_learning.run(settings)
    ways = ["alone", "beside an LSTM", "with its LSTM"]
    assert [row.method for row in report.rows[:3]] == [f"diffbary {way}" for way in ways]
    assert len(report.rows) == 9 and picture.read_bytes().startswith(b"\x89PNG")
    curves = {row.method: row.extra["curves"][0] for row in report.rows}
    assert all(len(curve) == 3 and np.all(np.isfinite(curve)) for curve in curves.values())
    assert curves["diffnea alone"][-1] < curves["diffnea alone"][0]  # it learns
    assert curves["delan with its LSTM"] != curves["delan beside an LSTM"]


class Listener:
    """A model that says what acceleration it was asked for."""

    def __init__(self, body: object):
        self.body = body
        self.asked: dict[str, np.ndarray] = {}

    def reset(self) -> None:
        self.asked.clear()

    def warm_up(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        pass

    def stateless(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        self.asked["stateless"] = qdd.copy()
        return np.zeros_like(q)

    def residual(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        self.asked["residual"] = qdd.copy()
        return np.zeros_like(q)


def test_feedback_reaches_a_black_box() -> None:
    hybrid, black = Listener(object()), Listener(None)
    models = cast(list[StreamingModel], [hybrid, black])
    controller = motion_tracking.ModelFeedForward(models, np.full((2, 3), 4.0), "measured")
    state = State(0.0, np.full((2, 3), 0.5), np.zeros((2, 3)), np.zeros((2, 3)))
    controller.reset(state)
    controller.command(state, JointAction(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 3))))
    fed_back = 1.0 - 4.0 * 0.5
    for model, seen in ((hybrid, 1.0), (black, fed_back)):
        np.testing.assert_allclose(model.asked["stateless"], fed_back)
        np.testing.assert_allclose(model.asked["residual"], seen)


def test_odd_settings_are_refused() -> None:
    with pytest.raises(RetorqueError, match="did you mean 'sdp'"):
        identification.run(identification.Settings(methods=("sdpp",)))
    with pytest.raises(RetorqueError, match="between 1 and"):
        inverse_dynamics.run(inverse_dynamics.Settings(trials=0))
    with pytest.raises(RetorqueError, match="between 1 and"):
        impedance_tracking.run(impedance_tracking.Settings(routes=0))


def test_min_jerk_starts_and_ends_at_rest() -> None:
    start, goal = np.zeros(2), np.array([1.0, -2.0])
    for time, place in ((0.0, start), (2.0, goal), (3.0, goal)):
        q, qd, qdd = motion_tracking.min_jerk(start, goal, time, 2.0)
        assert np.allclose(q, place) and np.allclose(qd, 0.0) and np.allclose(qdd, 0.0)
    before, now, after = (motion_tracking.min_jerk(start, goal, 0.7 + k * 1e-5, 2.0) for k in (-1, 0, 1))
    assert np.allclose((after[0] - before[0]) / 2e-5, now[1], atol=1e-6)
    assert np.allclose((after[1] - before[1]) / 2e-5, now[2], atol=1e-6)
