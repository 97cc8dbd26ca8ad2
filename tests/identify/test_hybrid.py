"""Hybrid models: training, resuming, stopping, reading the rigid part, and streaming without PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from retorque.identify.hybrid.recordings import Split
from retorque.identify.hybrid.streaming import StreamingModel, header_of, read_model, save_model
from retorque.logs.motion import Motion
from retorque.physics.inertia import pseudo_inertia
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

torch = pytest.importorskip("torch")

from retorque.identify.hybrid.hybrid import (  # noqa: E402
    SIGN,
    InverseDynamics,
    LSTMResidual,
    MLPResidual,
    Scaling,
    Shape,
)
from retorque.identify.hybrid.train_hybrid import HybridTraining, nmse, scaling_of, train  # noqa: E402

SHAPES = {
    "hybrid": Shape(linear=12, hidden=6, stride=2),
    "mlp": Shape(residual="mlp", width=8, stride=2),
    "rigid": Shape(residual="none", stride=2),
    "black box": Shape(rigid=False, linear=12, hidden=6, stride=2),
}
QUICK = HybridTraining(epochs=4, batch=8, steps=20, settle=20, threads=1, seed=1)


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


@pytest.fixture(scope="module")
def split(panda: Robot) -> Split:
    """Motions with friction that Sign cannot say: viscous, and a lag."""
    rng = np.random.default_rng(0)
    body = RigidBody(panda)

    def motion() -> Motion:
        t = np.arange(400)[:, None] * 1e-2
        w, p = rng.uniform(0.5, 2.0, 7), rng.uniform(-3, 3, 7)
        q, qd, qdd = panda.home + 0.3 * np.sin(w * t + p), 0.3 * w * np.cos(w * t + p), -0.3 * w**2 * np.sin(w * t + p)
        torque = body.inverse_dynamics(q, qd, qdd) + 3.0 * qd + np.clip(np.roll(qd, 5, axis=0) / 0.02, -1, 1)
        return Motion.of(*(x.astype(np.float32) for x in (q, qd, qdd, torque)))

    return Split([motion() for _ in range(6)], [motion() for _ in range(2)], [motion() for _ in range(2)])


def _model(panda: Robot, split: Split, name: str, frozen: bool = False) -> InverseDynamics:
    torch.manual_seed(0)
    start = replace(Parameters.ideal(panda, friction=SIGN), friction_coefficients=np.full((7, 1), 0.5))
    return InverseDynamics(panda, SHAPES[name], scaling_of(split, np.full(7, 0.5)), start, frozen=frozen).eval()


def _streaming(model: InverseDynamics) -> StreamingModel:
    return StreamingModel(model.robot, model.arrays(), header_of(model.robot, model.shape.as_dict(), {}))


def test_sizes_are_the_papers() -> None:
    count = [sum(p.numel() for p in kind(21, 7, Shape()).parameters()) for kind in (LSTMResidual, MLPResidual)]
    assert count == [33358, 46008]


@pytest.mark.parametrize("frozen", [False, True])
def test_training_helps_and_stays_physical(panda: Robot, split: Split, frozen: bool) -> None:
    model = _model(panda, split, "hybrid", frozen)
    before = nmse(model, split.test, "stateless")
    kept = model.arrays()["rigid.inertial"]
    train(model, split, replace(QUICK, epochs=25, rate=0.02, batch=4))
    assert nmse(model, split.test) < 0.8 * before
    inertial = model.arrays()["rigid.inertial"]
    assert np.all(np.linalg.eigvalsh(pseudo_inertia(inertial)) > 0.0)
    assert np.array_equal(inertial, kept) == frozen


@pytest.mark.parametrize("name,frozen", [("hybrid", False), ("hybrid", True), ("black box", False)])
def test_the_loss_that_stops_a_training_is_the_whole_models(
    panda: Robot, split: Split, name: str, frozen: bool
) -> None:
    """A frozen rigid part is taken off once; after no learning at all the loss is still that of the whole model."""
    model = _model(panda, split, name, frozen)
    curve = train(model, split, replace(QUICK, epochs=1, rate=0.0, rigid_rate=0.0, settle=0))
    assert curve.validation == [pytest.approx(nmse(model, split.validation), rel=1e-5)]


def test_a_thinned_training_sees_one_sequence_in_so_many(panda: Robot, split: Split) -> None:
    """Those that are left out may hold anything."""
    early = np.arange(400)[:, None] < 40
    spoilt = [replace(motion, torque=np.where(early, motion.torque, 1e6)) for motion in split.train]
    thin = replace(QUICK, epochs=1, thin=10)  # of 2 x 10 sequences of 20 steps a motion, the first of each phase
    curves = [train(_model(panda, split, "black box"), replace(split, train=t), thin) for t in (split.train, spoilt)]
    assert curves[0].train == curves[1].train


def test_killed_training_resumes_exactly(panda: Robot, split: Split, tmp_path: Path) -> None:
    whole, broken, resumed = (_model(panda, split, "hybrid") for _ in range(3))
    history = train(whole, split, QUICK)

    class Killed(Exception):
        pass

    def kill(epoch: int, loss: float) -> None:
        if epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        train(broken, split, QUICK, checkpoint=tmp_path / "c", progress=kill)
    again = train(resumed, split, QUICK, checkpoint=tmp_path / "c")
    assert again.validation == history.validation
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_checkpoint_of_other_settings_is_refused(panda: Robot, split: Split, tmp_path: Path) -> None:
    train(_model(panda, split, "hybrid"), split, replace(QUICK, epochs=1), checkpoint=tmp_path / "c")
    with pytest.raises(RetorqueError, match="other settings"):
        train(_model(panda, split, "hybrid"), split, QUICK, checkpoint=tmp_path / "c")
    (tmp_path / "c").write_bytes(b"nothing")
    with pytest.raises(RetorqueError, match="cannot resume"):
        train(_model(panda, split, "hybrid"), split, QUICK, checkpoint=tmp_path / "c")


def test_stops_early_and_keeps_the_best(panda: Robot, split: Split) -> None:
    """Validation torques that have nothing to do with the training ones can only get worse."""
    rng = np.random.default_rng(5)
    odd = [replace(m, torque=rng.standard_normal(m.torque.shape).astype(np.float32)) for m in split.validation]
    model = _model(panda, split, "black box")
    history = train(model, replace(split, validation=odd), replace(QUICK, epochs=60, patience=2, rate=0.01))
    assert len(history.validation) < 60
    assert history.best == int(np.argmin(history.validation)) == len(history.validation) - 3


@pytest.mark.parametrize("name", list(SHAPES))
def test_streaming_is_the_torch_model(panda: Robot, split: Split, name: str) -> None:
    model = _model(panda, split, name)
    motion = split.test[0]
    inputs = torch.from_numpy(np.concatenate([motion.q, motion.qd, motion.qdd], axis=1))
    wanted = np.empty_like(motion.torque)
    with torch.no_grad():
        for phase in range(2):
            wanted[phase::2] = model(inputs[None, phase::2])[0].numpy()
    stream = _streaming(model)
    found = np.array([stream.torque(*row) for row in zip(motion.q, motion.qd, motion.qdd, strict=True)])
    scale = model.torque_range.numpy()
    assert np.max(np.abs(found - wanted) / scale) < 1e-5


def test_streaming_in_a_batch_is_streaming_alone(panda: Robot, split: Split) -> None:
    model = _model(panda, split, "hybrid")
    alone, batch = _streaming(model), _streaming(model)
    first, second = split.test
    for k in range(30):
        rows = [np.stack([getattr(m, name)[k] for m in (first, second)]) for name in ("q", "qd", "qdd")]
        together = batch.torque(*rows)
        assert np.allclose(together[1], alone.torque(*(row[1] for row in rows)), atol=1e-4)


def test_warm_up_settles_the_memory(panda: Robot, split: Split) -> None:
    stream = _streaming(_model(panda, split, "hybrid"))
    state = (panda.home, np.zeros(7), np.zeros(7))
    cold = stream.torque(*state)
    stream.reset()
    stream.warm_up(*state)
    settled = stream.torque(*state)
    assert not np.allclose(settled, cold, atol=1e-9)
    assert np.allclose(stream.torque(*state), settled, atol=1e-4)


def test_weights_round_trip_and_mismatches_are_refused(panda: Robot, split: Split, tmp_path: Path) -> None:
    model = _model(panda, split, "hybrid")
    arrays, header = model.arrays(), header_of(panda, model.shape.as_dict(), {"seed": 1})
    path = save_model(tmp_path / "w.safetensors", arrays, header)
    assert read_model(path)[1] == header
    state = (panda.home, np.zeros(7), np.zeros(7))
    assert np.array_equal(StreamingModel.load(path, panda).torque(*state), _streaming(model).torque(*state))
    with pytest.raises(RetorqueError, match="for robot 'panda'"):
        StreamingModel.load(path, Robot.load("z1"))
    for change, words in (
        ({"robots": {"panda": header["robots"]["panda"][::-1]}}, "joints"),
        ({"rate": 500.0}, "500 Hz"),
        ({"rate": None}, "rate"),
        ({"shape": {"rigid": True, "residual": "gru"}}, "unknown"),
        ({"shape": {"rigid": True, "residual": "mlp", "stride": 0}}, "stride"),
        ({"shape": {"rigid": True, "residual": "mlp", "stride": 2}}, "lack"),
    ):
        save_model(path, arrays, {**header, **change})
        with pytest.raises(RetorqueError, match=words):
            StreamingModel.load(path, panda)
    save_model(path, {**arrays, "mean": arrays["mean"] * np.nan}, header)
    with pytest.raises(RetorqueError, match="finite"):
        StreamingModel.load(path, panda)


@pytest.mark.parametrize("content", [b"", b"garbage" * 9, save({"a": np.zeros(1)})])
def test_damaged_weights_are_refused(panda: Robot, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(RetorqueError):
        StreamingModel.load(path, panda)
    with pytest.raises(RetorqueError, match="there is no file"):
        StreamingModel.load(tmp_path / "none", panda)


def test_streaming_never_imports_torch() -> None:
    modules = "retorque.identify.hybrid.streaming, retorque.identify.hybrid.motion_tracking"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_header_is_json(panda: Robot) -> None:
    assert json.loads(json.dumps(header_of(panda, Shape().as_dict(), {})))["only"] == "panda"


def test_model_needs_a_part(panda: Robot) -> None:
    with pytest.raises(RetorqueError, match="neither"):
        Shape(rigid=False, residual="none")
    with pytest.raises(RetorqueError, match="starts from"):
        InverseDynamics(panda, Shape(), Scaling(np.zeros(21), np.ones(21), np.ones(14), np.ones(7), np.ones(7)))
