"""A residual learns what an identified model leaves over, streams as it was trained, and says when it does not pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.control.action import JointAction
from retorque.control.computed_torque import ComputedTorque
from retorque.identify.methods.estimator import fit
from retorque.identify.residual.residual_features import COUNT, features
from retorque.identify.residual.residual_model import ResidualModel, save_residual
from retorque.physics.friction import preset
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

torch = pytest.importorskip("torch")
Simulate = Callable[..., Any]


@pytest.fixture(scope="module")
def rippled(simulate: Simulate) -> tuple[Any, Any]:
    """A robot with a torque ripple that no rigid body has, and its identified model."""
    truth = simulate("z1", preset("coulomb-viscous"), seconds=24.0, rate=50.0)
    motion = truth.motion
    ripple = 0.5 * np.sin(6.0 * motion.q) * np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    noise = 0.02 * np.random.default_rng(0).standard_normal(ripple.shape)
    rough = replace(motion, torque=motion.torque + ripple + noise)
    return fit(rough, truth.robot, preset("coulomb-viscous"), "sdp"), rough


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_it_streams_as_it_was_trained(rippled: tuple[Any, Any], kind: str, tmp_path: Path) -> None:
    from retorque.identify.residual.train_residual import Networks, TorqueResidualTraining, train_residual

    estimate, motion = rippled
    settings = TorqueResidualTraining(
        kind="mlp" if kind == "mlp" else "lstm", epochs=60 if kind == "mlp" else 2, hidden=8
    )
    found = train_residual(estimate, motion, settings)
    arrays = found.arrays | {"gain": np.ones(6)}
    robot = estimate.identified()
    path = save_residual(tmp_path / "r.safetensors", arrays, robot, {"residual": kind}, {})
    model = ResidualModel.load(path, robot, timestep=0.02)
    load = estimate.predict(motion.q, motion.qd, motion.qdd)
    said = np.array([model.residual(*row) for row in zip(motion.q, motion.qd, motion.qdd, load, strict=True)])
    networks = Networks(6, settings)
    networks.load_state_dict(
        {f"layers.{name.replace('.', ':')}": torch.tensor(value) for name, value in arrays.items() if "." in name}
    )
    seen = (features(motion.q, motion.qd, motion.qdd, load / arrays["load"]) - arrays["mean"]) / arrays["deviation"]
    with torch.no_grad():
        want = networks(torch.tensor(seen, dtype=torch.float32)[None])[0].numpy() * arrays["scale"]
    assert np.allclose(said, want, atol=1e-4)
    if kind == "mlp":
        assert np.all(found.after <= found.before * 1.001)
        assert np.mean(found.after[:3] / found.before[:3]) < 0.9  # the ripple is learnt where there is one


def test_it_feeds_a_controller_forward(rippled: tuple[Any, Any], tmp_path: Path) -> None:
    from retorque.identify.residual.train_residual import TorqueResidualTraining, train_residual

    estimate, motion = rippled
    found = train_residual(estimate, motion, TorqueResidualTraining(kind="mlp", epochs=1, hidden=4))
    robot = estimate.identified()
    path = save_residual(tmp_path / "r.safetensors", found.arrays, robot, {"residual": "mlp"}, {})
    model = ResidualModel.load(path, robot)
    controller = ComputedTorque(robot, model, np.full(6, 100.0))
    q = np.asarray(robot.home)[None]
    state = State(time=0.0, position=q, velocity=np.zeros_like(q), torque=np.zeros_like(q))
    command = controller.command(state, JointAction(q, np.zeros_like(q), np.zeros_like(q)))
    assert command.torque is not None and np.all(np.isfinite(command.torque))
    still = np.zeros_like(q)
    assert np.allclose(model.stateless(q, still, still)[0], estimate.predict(q, still, still)[0], atol=1e-6)


def test_what_cannot_be_learnt_does_not_pay(simulate: Simulate) -> None:
    from retorque.identify.residual.train_residual import TorqueResidualTraining, train_residual

    truth = simulate("z1", seconds=16.0, rate=50.0)
    noise = 0.2 * np.random.default_rng(1).standard_normal(truth.motion.torque.shape)
    motion = replace(truth.motion, torque=truth.motion.torque + noise)
    found = train_residual(
        fit(motion, truth.robot, truth.friction, "sdp"), motion, TorqueResidualTraining(kind="mlp", epochs=10)
    )
    assert not found.pays and np.all(found.after <= found.before * 1.001)
    with pytest.raises(RetorqueError, match="too few"):
        train_residual(fit(motion, truth.robot, truth.friction, "sdp"), motion[:100], TorqueResidualTraining())


def test_a_gain_that_is_not_sure_does_not_pay() -> None:
    from retorque.identify.residual.train_residual import _surely

    held = np.arange(100) % 25 >= 20
    rest, even = np.ones((100, 2)), np.full((100, 2), 0.12)
    assert _surely(rest, even, held) == pytest.approx(0.88)  # the same in every stretch
    uneven = even * np.repeat([0.0, 2.0, 0.0, 2.0], 25)[:, None]
    assert _surely(rest, uneven, held) > 0.93  # the same on average


def test_features_and_foreign_weights(rippled: tuple[Any, Any], tmp_path: Path) -> None:
    estimate, _ = rippled
    assert features(*np.zeros((4, 3, 6))).shape == (3, 6, COUNT)
    path = save_residual(tmp_path / "r.safetensors", {"mean": np.zeros(2)}, estimate.robot, {"residual": "mlp"}, {})
    with pytest.raises(RetorqueError, match="lack"):
        ResidualModel.load(path, estimate.robot)
