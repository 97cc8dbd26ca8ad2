"""What networks are trained on: sequences of ticks in every phase, scales of inputs and torques, rates that fall."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from retorque.identify.hybrid.hybrid import Shape
from retorque.identify.hybrid.recordings import Split
from retorque.identify.hybrid.train_hybrid import (
    ACCELERATION_KNEE,
    NO_KNEE,
    STEP_AFTER,
    VELOCITY_KNEE,
    HybridTraining,
    scaling_of,
    sequences,
)
from retorque.logs.motion import Motion
from retorque.work.errors import RetorqueError

N = 2


def counting(rows: int, first: float = 0.0) -> Motion:
    """Positions count the ticks; velocities are ten times, accelerations a hundred times, torques minus that."""
    ticks = first + np.arange(rows, dtype=float)[:, None] * np.ones(N)
    return Motion.of(ticks, 10.0 * ticks, 100.0 * ticks, -ticks)


@pytest.mark.parametrize(("rows", "steps", "stride"), [(100, 10, 1), (100, 10, 3), (47, 5, 4), (20, 20, 1)])
def test_every_phase_of_every_tick_is_seen_once(rows: int, steps: int, stride: int) -> None:
    inputs, torques = sequences([counting(rows)], steps, stride)
    assert inputs.shape[1:] == (steps, 3 * N) and torques.shape == (*inputs.shape[:2], N)
    ticks = inputs[..., 0].numpy()
    np.testing.assert_array_equal(np.diff(ticks, axis=1), stride)  # within a sequence time runs evenly
    assert len(np.unique(ticks)) == ticks.size and ticks.max() < rows
    lost = rows - ticks.size
    assert 0 <= lost < steps * stride  # only ends that fill no sequence
    np.testing.assert_array_equal(torques[..., 1].numpy(), -ticks)
    np.testing.assert_array_equal(inputs[..., N].numpy(), 10.0 * ticks)
    np.testing.assert_array_equal(inputs[..., 2 * N].numpy(), 100.0 * ticks)


def test_motions_do_not_run_into_each_other() -> None:
    inputs, _ = sequences([counting(25), counting(25, first=1000.0)], 10)
    ticks = inputs[..., 0].numpy()
    assert ticks.shape == (4, 10) and np.all((ticks < 25).all(axis=1) | (ticks >= 1000).all(axis=1))


def test_too_short_a_motion_is_refused() -> None:
    with pytest.raises(RetorqueError, match="shorter than a sequence"):
        sequences([counting(9)], 10)
    assert len(sequences([counting(9), counting(30)], 10)[0]) == 3  # one that is long enough suffices


def test_inputs_are_scaled_by_what_was_seen() -> None:
    rng = np.random.default_rng(0)
    motion = Motion.of(*rng.normal(0.0, 1.0, (4, 5000, N)))
    split = Split(train=[motion], validation=[motion], test=[motion])
    ours = scaling_of(split, np.array([0.1, 0.2]))
    np.testing.assert_array_equal(ours.knee, [VELOCITY_KNEE, VELOCITY_KNEE, ACCELERATION_KNEE, ACCELERATION_KNEE])
    np.testing.assert_array_equal(ours.residual, [0.1, 0.2])
    np.testing.assert_allclose(ours.torque_range, np.ptp(motion.torque, axis=0))
    published = scaling_of(split, None)
    assert np.all(published.knee == NO_KNEE)
    np.testing.assert_array_equal(published.residual, published.torque_range)
    shown = np.arcsinh(motion.qd / NO_KNEE)  # so far below its knee it is a straight line
    np.testing.assert_allclose(shown * NO_KNEE, motion.qd, rtol=1e-6)
    np.testing.assert_allclose(published.deviation[N : 2 * N], np.std(shown[::50], axis=0) + 1e-9, rtol=1e-9)


def test_rates_fall_along_a_cosine_or_a_step() -> None:
    cosine = HybridTraining(epochs=10)
    assert cosine.fallen(0.0) == 1.0 and cosine.fallen(5.0) == pytest.approx(0.5) and cosine.fallen(10.0) < 1e-12
    step = HybridTraining.as_published(epochs=100)
    assert step.fallen(STEP_AFTER - 0.01) == 1.0 and step.fallen(STEP_AFTER) == step.fallen(99.0) == 0.1
    assert step.published and step.rate == step.rigid_rate == 0.004 and step.patience == 30 and step.steps == 100


def test_a_published_shape_is_one_network_at_every_tick() -> None:
    shape = Shape.published(residual="mlp")
    assert shape.stride == 1 and not shape.separate and not shape.rotors and shape.residual == "mlp" and shape.rigid
    assert (shape.linear, shape.hidden, shape.width) == (100, 50, 200)  # Table IV
    assert not Shape.published(rigid=False).rigid
    with pytest.raises(RetorqueError, match="neither"):
        Shape.published(rigid=False, residual="none")
