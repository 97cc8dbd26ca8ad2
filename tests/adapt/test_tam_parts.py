"""The parts of TAM against plain algebra: probes, fits, features, perceptron and trim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.adapt.tam.adaptor_rows import AdaptorRows, RowLayout
from retorque.adapt.tam.context import PROBES, Context, mass_matrices, torque_unit
from retorque.adapt.tam.derivative import accelerations
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.fast_perceptron import EPSILON, FastPerceptron
from retorque.adapt.tam.features import (
    BOUND,
    adaptor_features,
    fast_size,
    hidden_features,
    history_rows,
    patch_size,
    slow_size,
)
from retorque.adapt.tam.preset import preset
from retorque.adapt.tam.trim import EVERY, MOST, SPAN, SURPRISE, Trim
from retorque.loop.history import History
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

ARMS = ("panda", "z1", "ur10e", "xmate3")
SMALL = preset("small")


@pytest.fixture(scope="module", params=ARMS)
def context(request: pytest.FixtureRequest) -> Context:
    return Context(Robot.load(request.param))


@pytest.fixture(scope="module")
def panda() -> Context:
    return Context(Robot.load("panda"))


def states(robot: Robot, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (robot.home + 0.3 * rng.standard_normal((count, robot.n)), *rng.standard_normal((2, count, robot.n)))


def test_a_probe_is_the_largest_payload(context: Context) -> None:
    """What a payload of that mass at the mount adds to the robot's own torques, by Pinocchio."""
    from retorque.physics.rigid_body import RigidBody

    robot = context.robot
    q, qd, qdd = states(robot, 4)
    mass = float(context.profile.payload_mass[1])
    loaded = RigidBody(robot, inertial=Parameters.ideal(robot).with_payload(mass).total_inertial(robot))
    added = loaded.inverse_dynamics(q, qd, qdd) - context.body.inverse_dynamics(q, qd, qdd)
    probes = context.probe_torques(q, qd, qdd)
    assert probes.shape == (4, PROBES, robot.n)
    np.testing.assert_allclose(probes[:, 0] * context.unit, added, atol=1e-8)


def test_the_ticks_shortcuts_are_the_models_own(context: Context) -> None:
    q, qd, torque = states(context.robot, 3, seed=1)
    ideal, probes = context.ideal_response(q, qd, torque)
    np.testing.assert_allclose(ideal, context.body.forward_dynamics(q, qd, torque), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(probes, context.probe_torques(q, qd, ideal), rtol=1e-6, atol=1e-7)
    matrix, bias = context.probe_matrices(q, qd)
    by_matrix = np.einsum("tkij,tj->tki", matrix, ideal) + bias
    np.testing.assert_allclose(by_matrix, probes, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(mass_matrices(context.body, q), context.body.mass_matrix(q), atol=1e-12)


def test_what_a_network_knows_of_a_robot_has_no_unit(context: Context) -> None:
    assert np.all(torque_unit(context.robot) > 0.0) and np.all(context.load >= context.unit)
    assert context.static.shape == (context.robot.n, 8) and np.all(np.isfinite(context.static))
    assert np.max(np.abs(context.static)) < 50.0


def test_robots_with_too_many_joints_are_refused() -> None:
    for name in ("leap_hand", "g1"):
        with pytest.raises(RetorqueError, match="fixed arms of up to 8 joints"):
            Context(Robot.load(name))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 9999), missing=st.floats(0.0, 0.5), half=st.integers(4, 12))
def test_a_parabola_has_the_curvature_that_it_has_whatever_is_missing(seed: int, missing: float, half: int) -> None:
    rng = np.random.default_rng(seed)
    average, blocks, dt = 5, 3, 1e-3
    time = dt * np.arange(2 * half + average * blocks)[:, None, None]
    start, speed, curvature = rng.uniform(-2.0, 2.0, (3, 1, 2, 3))
    q, qd = start + speed * time + 0.5 * curvature * time**2, speed + curvature * time
    valid = rng.random((len(time), 2)) >= missing
    spoilt = [np.where(valid[..., None], x, 99.0) for x in (q, qd)]
    found = accelerations(*spoilt, valid, half, average, dt)
    assert found.shape == (blocks, 2, 3)
    enough = np.array(
        [[valid[b * average + average // 2 :][: 2 * half + 1, t].sum() >= 5 for t in range(2)] for b in range(blocks)]
    )
    wanted = np.broadcast_to(curvature, found.shape)
    np.testing.assert_allclose(found[enough], wanted[enough], rtol=1e-3, atol=2e-3)


def ticks(robot: Robot, count: int, trials: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    time = 1e-3 * np.arange(count)[:, None, None]
    rate, phase = rng.uniform(1.0, 6.0, (2, trials, robot.n))
    angle = rate * time + phase
    q, qd = robot.home + 0.3 * np.sin(angle), 0.3 * rate * np.cos(angle)
    return q, qd, 5.0 * np.sin(2.0 * angle), np.ones((count, trials), dtype=bool)


def test_rows_of_history_are_a_robots_own_bounded_and_zero_where_nothing_is_known(panda: Context) -> None:
    count = SMALL.stride + 2 * SMALL.half_window
    q, qd, torque, valid = ticks(panda.robot, count, 3)
    plain, slow = history_rows(panda, SMALL, q, qd, torque, valid, 1e-3)
    assert plain.shape == (3, SMALL.stride_rows, 7, fast_size(SMALL)) and slow.shape[-1] == slow_size(SMALL)
    assert plain.dtype == np.float32 and np.all(np.abs(plain) <= BOUND) and np.all(np.abs(slow) <= BOUND)
    alone = history_rows(panda, SMALL, q[:, 1:2], qd[:, 1:2], torque[:, 1:2], valid[:, 1:2], 1e-3)
    np.testing.assert_allclose(alone[0][0], plain[1], atol=1e-6)
    valid[:, 0] = False
    torque[:, 2] = 0.0  # idle
    masked, masked_slow = history_rows(panda, SMALL, q, qd, torque, valid, 1e-3)
    assert not masked[[0, 2]].any() and not masked_slow[[0, 2]].any()
    np.testing.assert_array_equal(masked[1], plain[1])


def test_the_ideal_robot_leaves_no_residual_and_a_push_leaves_itself(panda: Context) -> None:
    count = SMALL.stride + 2 * SMALL.half_window
    q, qd, _, valid = ticks(panda.robot, count, 2)
    qdd = np.gradient(qd, 1e-3, axis=0)
    torque = panda.body.inverse_dynamics(q, qd, qdd) + panda.armature_shift * qdd
    push = np.zeros((2, 7))
    push[1] = 0.5 * panda.unit
    rows, _ = history_rows(panda, SMALL, q, qd, torque + push, valid, 1e-3)
    np.testing.assert_allclose(rows[0, :, :, 3], 0.0, atol=0.05)
    np.testing.assert_allclose(rows[1, :, :, 3], 0.5, atol=0.05)


@pytest.mark.parametrize("name", ("small", "paper"))
def test_one_variant_lacks_the_residual_alone(name: str) -> None:
    fast, slow = hidden_features(preset(name, "tam-no-etau"))
    np.testing.assert_array_equal(np.flatnonzero(fast == 0.0), [3])  # the residual, by the test above
    assert np.all(slow == 1.0)
    more = sum(np.sum(mask == 0.0) for mask in hidden_features(preset(name, "tam-no-residual")))
    assert more == (1 if preset(name).as_published else 3 + PROBES)  # and acceleration, own load, test payloads


@pytest.mark.parametrize("name", ("tiny", "small", "paper"))
def test_a_patch_is_made_of_its_rows(name: str) -> None:
    size = preset(name)
    slow = size.patch_rows // size.slow * slow_size(size) if size.slow else 0
    assert patch_size(size) == size.patch_rows * fast_size(size) + slow
    assert size.patch_rows * size.average == size.patch and size.stride_rows * size.average == size.stride


def test_the_ticks_rows_are_the_trainings_features(panda: Context) -> None:
    """Basis and inputs in the tick's layout against `adaptor_features`, which the training uses."""
    trials, window, n = 2, SMALL.window, 7
    rng = np.random.default_rng(0)
    q, qd, torque = rng.standard_normal((3, trials, n, window)) * np.array([0.1, 0.5, 10.0])[:, None, None, None]
    nominal, ideal = 10.0 * rng.standard_normal((2, trials, n))
    probes = rng.standard_normal((trials, PROBES, n))
    layout, rows = RowLayout(window), AdaptorRows(panda, window, trials)
    flat = lambda x: np.moveaxis(x, -1, 0).reshape(window, -1)  # noqa: E731
    rows.fill(flat(q), flat(qd), flat(torque), nominal.ravel(), ideal.ravel(), probes)
    known = SimpleNamespace(
        unit=panda.unit,
        load=panda.load,
        armature=panda.robot.armature,
        armature_range=panda.armature_range,
        armature_shift=panda.armature_shift,
    )
    position, velocity, pulled, basis = adaptor_features(np, known, q, qd, torque, nominal, ideal, probes)
    coefficients = rng.standard_normal((basis.shape[-1], trials * n))
    unit = np.tile(panda.unit, trials)
    wanted = np.einsum("tjc,ctj->tj", basis, coefficients.reshape(-1, trials, n)) * panda.unit
    found = np.einsum("rj,rj->j", layout.coefficients(coefficients, unit), rows.basis)
    np.testing.assert_allclose(found, wanted.ravel(), atol=1e-9)
    embed = 5
    weights = {}
    for name, group in (("position", position), ("velocity", velocity), ("torque", pulled)):
        weights[f"{name}.weight"] = rng.standard_normal((embed, group.shape[-1]))
        weights[f"{name}.bias"] = rng.standard_normal(embed)
    groups = (("position", position), ("velocity", velocity), ("torque", pulled))
    wanted = np.concatenate([g @ weights[f"{k}.weight"].T + weights[f"{k}.bias"] for k, g in groups], axis=-1)
    found = layout.embedding(weights) @ rows.inputs
    np.testing.assert_allclose(found.T.reshape(wanted.shape), wanted, atol=1e-9)


def test_the_fast_perceptron_is_the_plain_one() -> None:
    tiny, n, trials, inputs, embed = preset("tiny"), 4, 3, 9, 6
    rng = np.random.default_rng(1)
    h, depth = tiny.hidden, tiny.depth
    shapes = {"combine": (h, embed), "summary": (h, h), **{f"layers.{k}": (h, h) for k in range(depth)}, "head": (1, h)}
    weights = {}
    for name, (out, into) in shapes.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = rng.standard_normal((out, into)), rng.standard_normal(out)
    embedding = rng.standard_normal((embed, inputs))
    fast = FastPerceptron(weights, embedding, tiny, n, trials)
    gain, shift = rng.standard_normal((2, depth, h, trials * n))
    fast.modulate(gain, shift)
    values = rng.standard_normal((inputs, trials * n))

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"][:, None]

    x = layer("combine", np.maximum(embedding @ values, 0.0))
    mean = np.maximum(x.reshape(h, trials, n).mean(axis=-1), 0.0)
    x = x + np.repeat(layer("summary", mean), n, axis=1)
    for k in range(depth):
        scaled = x / np.sqrt(np.mean(x**2, axis=0) + EPSILON)
        x = x + layer(f"layers.{k}", np.maximum(scaled * gain[k] + shift[k], 0.0))
    wanted = layer("head", x)[0]
    for _ in range(2):  # its arrays are used again
        np.testing.assert_allclose(fast(values), wanted, rtol=1e-9)


class Silent:
    """An adaptor that corrects nothing."""

    preset = SMALL

    def correction(self, q, *_: np.ndarray) -> np.ndarray:
        return np.zeros(q.shape[:-1])


def trimmed(panda: Context, extra: np.ndarray, count: int = 400, broken: range | None = None) -> Trim:
    """The trim of robots that need some torque (trials, n) beside the ideal robot's."""
    trials = len(extra)
    history = History(SPAN + 1, trials, 7, 1e-3)
    trim = Trim(panda, cast(FastAdaptor, Silent()), history)
    rate = np.linspace(1.0, 2.0, 7)
    for tick in range(count):
        angle = rate * 1e-3 * tick
        q, qd, qdd = (np.tile(x, (trials, 1)) for x in (panda.robot.home + 0.2 * np.sin(angle),
                      0.2 * rate * np.cos(angle), -0.2 * rate**2 * np.sin(angle)))  # fmt: skip
        torque = panda.body.inverse_dynamics(q, qd, qdd) + extra
        if broken is not None and tick in broken:
            torque[0] = np.nan
        history.add(State(1e-3 * tick, q, qd, torque))
        assert trim.update() == (tick + 1 >= SPAN and (tick + 1) % EVERY == 0)
        assert not trim.update()  # once a tick
    return trim


def test_the_trim_takes_out_what_is_small_bounds_what_is_large_and_leaves_contact(panda: Context) -> None:
    unit = panda.unit
    extra = np.stack([0.0 * unit, 0.3 * unit, 1.5 * unit, (SURPRISE + 0.5) * unit])
    trim = trimmed(panda, extra)
    np.testing.assert_allclose(trim.torque[0], 0.0, atol=0.01 * unit.max())
    np.testing.assert_allclose(trim.torque[1], 0.3 * unit, rtol=0.03)
    np.testing.assert_allclose(trim.torque[2], MOST * unit)
    np.testing.assert_allclose(trim.torque[3], 0.0, atol=1e-12)
    trim.reset()
    assert not trim.torque.any()


def test_where_reports_are_missing_the_trim_stays_and_others_go_on(panda: Context) -> None:
    extra = np.stack([0.3 * panda.unit, 0.2 * panda.unit])
    held = trimmed(panda, extra, 200, broken=range(100, 200)).torque
    whole = trimmed(panda, extra, 200).torque
    np.testing.assert_array_equal(held[1], whole[1])
    before = trimmed(panda, extra, 100).torque
    np.testing.assert_array_equal(held[0], before[0])
