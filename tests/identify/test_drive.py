"""Dead zones, biases and gains of the drives, learnt beside links and sigmoidal friction."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt.identified import Identified
from retorque.identify.commands import IdentifySettings, identify
from retorque.identify.drive.choose_drive import DriveComparison, check_method, with_drive
from retorque.identify.drive.drive_estimate import PLAIN, DriveEstimate
from retorque.identify.drive.drive_layout import STEP, DriveLayout
from retorque.identify.drive.drive_program import DriveProgram
from retorque.identify.from_log import from_log
from retorque.identify.methods.sdp import SemidefiniteProgram
from retorque.identify.report.model_files import export
from retorque.identify.report.static_part import StaticPart
from retorque.identify.report.summary import _physical_json, motor_table
from retorque.logs.motion import Motion
from retorque.physics.actuator import command_for
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import preset
from retorque.physics.inverse_model import ParametricModel
from retorque.physics.parameters import PAIRS, Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")
NOISE = 0.01
"""Of the torques [N·m]."""


def sines(samples: int, seed: int, period: float = 0.01) -> Motion:
    """A lively motion around home without torques."""
    rng = np.random.default_rng(seed)
    t = period * np.arange(samples)[:, None, None]
    w = rng.uniform(0.6, 6.0, (ARM.n, 4))
    a, phase = rng.uniform(0.1, 0.5, w.shape) / np.sqrt(w), rng.uniform(0.0, 2.0 * np.pi, w.shape)
    q = ARM.home + np.sum(a * np.sin(w * t + phase), axis=-1)
    qd, qdd = np.sum(a * w * np.cos(w * t + phase), axis=-1), -np.sum(a * w**2 * np.sin(w * t + phase), axis=-1)
    return Motion.of(q, qd, qdd, np.zeros_like(q), period)


def truth(seed: int = 1000) -> Parameters:
    """A hidden arm, its payload as part of its last link."""
    p = Parameters.sample(ARM, profile_of(ARM), (), seed)
    return replace(p, inertial=p.total_inertial(ARM), payload=np.zeros(10))


def commanded(p: Parameters, motion: Motion, seed: int, noise: float = NOISE) -> Motion:
    """The motion with the commands that an arm of these parameters needs for it."""
    command = inverse_torque_command(RigidBody(ARM), p, motion.q, motion.qd, motion.qdd)
    return replace(motion, torque=command + np.random.default_rng(seed).normal(0.0, noise, command.shape))


@pytest.fixture(scope="module")
def learnt() -> DriveEstimate:
    return DriveProgram(samples=2000).fit(commanded(truth(), sines(4000, 1000), 1), ARM)


def test_the_true_parameters_leave_nothing_over() -> None:
    p, motion = truth(), sines(40, 1001)
    motion = commanded(p, motion, 0, noise=0.0)
    layout = DriveLayout(ARM)
    regressor = RigidBody(ARM).regressor(motion.q, motion.qd, motion.qdd)
    left = layout.residual(motion, layout.selection.to_vector(p), regressor)
    assert np.abs(left).max() < 1e-10


def test_rows_are_the_derivatives_of_the_residual() -> None:
    layout, rng = DriveLayout(ARM), np.random.default_rng(0)
    motion = replace(sines(30, 1002), torque=rng.normal(0.0, 5.0, (30, ARM.n)))
    regressor = RigidBody(ARM).regressor(motion.q, motion.qd, motion.qdd)
    vector = layout.selection.to_vector(truth(1003))
    rows = layout.rows(motion, vector, regressor)
    for j, columns in enumerate(layout.columns):
        dense = np.zeros((len(motion), len(vector)))
        dense[:, columns] = rows[j]
        for k in rng.choice(len(vector), 40, replace=False):
            up, down = vector.copy(), vector.copy()
            up[k] += STEP
            down[k] -= STEP
            slope = layout.residual(motion, up, regressor)[:, j] - layout.residual(motion, down, regressor)[:, j]
            np.testing.assert_allclose(dense[:, k], slope / (2.0 * STEP), atol=2e-6, rtol=1e-5)


def test_every_joint_has_its_own_columns_once() -> None:
    layout = DriveLayout(ARM)
    names = np.array(layout.selection.names)
    for joint, own in zip(ARM.joint_names, layout.own, strict=True):
        assert len(own) == 2 * len(PAIRS) and all(name.endswith(f" {joint}") for name in names[own])
    assert len(np.unique(layout.own)) == layout.own.size == layout.selection.size - layout.links.size


def test_shapes_stay_within_reach_of_the_prior() -> None:
    layout = DriveLayout(ARM)
    far = layout.clip(layout.prior.mean + 100.0)
    moved = np.array([name.startswith(("friction_slope", "friction_shift")) for name in layout.selection.names])
    assert np.all(far[~moved] == layout.prior.mean[~moved] + 100.0) and np.all(
        far[moved] < layout.prior.mean[moved] + 9
    )


def test_dead_zones_and_drives_are_found(learnt: DriveEstimate) -> None:
    p = truth()
    assert learnt.physical
    # a difference between the two sides is a bias but for the moments within the dead zone
    np.testing.assert_allclose(learnt.joints.dead_zone.mean(axis=1), p.dead_zone.mean(axis=1), atol=0.08)
    np.testing.assert_allclose(learnt.joints.dead_zone, p.dead_zone, atol=0.2)
    np.testing.assert_allclose(learnt.joints.viscous, p.viscous, atol=0.05)
    off = np.concatenate([(getattr(learnt.joints, k) - getattr(p, k)) / learnt.joint_errors[k] for k in PAIRS[:4]])
    assert np.median(np.abs(off)) < 1.5  # error bars; not of all: a dead zone's edge is seen by few samples
    fresh = commanded(p, sines(800, 1010), 2)
    terms = SemidefiniteProgram().fit(commanded(p, sines(4000, 1000), 1), ARM, preset("full"))
    assert np.all(learnt.score(fresh).rmse < 0.5 * terms.score(fresh).rmse)


def test_its_card_says_all_of_it(learnt: DriveEstimate, tmp_path: Path) -> None:
    written = Robot.load(export(learnt, tmp_path)["card"])
    assert written.drive is not None and written.friction is not None and written.friction.family == "sigmoid"
    read = Parameters.of_robot(written)
    for name in PAIRS:
        np.testing.assert_allclose(getattr(read, name), getattr(learnt.joints, name), atol=1e-9)
    motion = sines(50, 1011)
    wanted = learnt.predict(motion.q, motion.qd, motion.qdd)
    np.testing.assert_allclose(ParametricModel(written).torque(motion.q, motion.qd, motion.qdd), wanted, atol=1e-6)
    assert written.friction.deviation is not None and np.all(written.friction.deviation > 0.0)
    fed = Identified(written, (), card=written).correct(
        State(0.0, ARM.home, np.zeros(ARM.n), np.zeros(ARM.n)), np.ones(ARM.n)
    )
    assert np.all(np.isfinite(fed))


def test_a_prediction_is_the_command_through_the_drive(learnt: DriveEstimate) -> None:
    motion = sines(20, 1012)
    moved = learnt.body.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_array_equal(learnt.torque(motion), command_for(moved, motion.qd, learnt.joints))
    static = StaticPart.of(learnt).torque(motion)  # what URDF and MJCF can say: no drive
    assert np.all(np.abs(static - learnt.torque(motion)).max(axis=0) > 0.0)


def test_links_explain_what_is_behind_the_drive(learnt: DriveEstimate) -> None:
    motion = sines(400, 1012)
    moved = learnt.body.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    there = learnt.behind_drive(replace(motion, torque=learnt.torque(motion)))
    viscous, dry = learnt.joints.viscous.mean(axis=1), 0.5 * learnt.joints.friction_amplitude.mean(axis=1)
    friction = PLAIN.torque(motion.qd, np.stack([dry, viscous, np.zeros(ARM.n)], axis=1))
    np.testing.assert_allclose(there.torque, moved + friction, atol=1e-9)


def test_a_result_names_every_number(learnt: DriveEstimate) -> None:
    content = _physical_json(learnt)
    assert content["friction"]["family"] == "sigmoid"
    named = {row["name"]: row for row in content["parameters"]}
    first = named[f"dead zone forward {ARM.joint_names[0]}"]
    assert first["value"] == learnt.joints.dead_zone[0, 0] and 0.0 < first["std"] < first["card_std"]
    slope = named[f"friction slope backward {ARM.joint_names[-1]}"]
    assert slope["unit"] == "s/rad" and slope["value"] == pytest.approx(learnt.joints.friction_slope[-1, 1])
    assert len(motor_table(learnt).rows) == 1 + 2 * len(PAIRS)


def test_a_dead_channel_has_no_say() -> None:
    motion = commanded(truth(), sines(600, 1013), 3)
    torque = motion.torque.copy()
    torque[:, 1] = 0.0
    found = DriveProgram(samples=300, iterations=3).fit(replace(motion, torque=torque), ARM)
    mass = np.array([link.mass for link in ARM.moving_links])
    assert found.physical and np.all(found.inertial[:, 0] < 4.0 * mass + 1.0)


def test_held_back_motion_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    good = DriveComparison(terms=np.ones(3), sigmoid=np.array([0.5, 0.9, 0.9]))
    assert good.pays and not DriveComparison(terms=np.ones(3), sigmoid=np.full(3, 0.9)).pays
    assert good.as_json()["sigmoid"] == [0.5, 0.9, 0.9]
    clean = replace(truth(), dead_zone=np.zeros((ARM.n, 2)), friction_amplitude=np.zeros((ARM.n, 2)))
    motion = commanded(replace(clean, torque_bias=np.zeros((ARM.n, 2))), sines(1000, 1014), 4)
    estimate = SemidefiniteProgram().fit(motion, ARM, preset("asymmetric"))
    monkeypatch.setattr("retorque.identify.drive.choose_drive.DriveProgram", partial(DriveProgram, samples=300))
    kept, compared = with_drive("auto", motion, estimate)
    assert kept is estimate and compared is not None and not compared.pays
    assert with_drive("presliding", motion, estimate) == (estimate, None)


def test_a_linear_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="use --method sdp"):
        check_method("sigmoid", "wls")
    check_method("sigmoid", "sdp")
    motion = commanded(truth(), sines(800, 1015), 5)
    np.savez(tmp_path / "log.npz", time=motion.time, q=motion.q, qd=motion.qd, tau=motion.torque)
    with pytest.raises(RetorqueError, match="use --method sdp"):
        from_log(tmp_path / "log.npz", ARM, friction="sigmoid", method="ols")


def test_one_command_from_a_log_to_a_card_with_drives(tmp_path: Path) -> None:
    motion = commanded(truth(), sines(3000, 1016), 6)
    np.savez(tmp_path / "log.npz", time=motion.time, q=motion.q, qd=motion.qd, tau=motion.torque)
    settings = IdentifySettings(
        logs=(tmp_path / "log.npz",),
        robot="z1",
        friction="sigmoid",
        json=tmp_path / "out.json",
        export=tmp_path,
        report=tmp_path,
    )
    outcome = identify(settings)
    for _, written in outcome.write_files():
        assert not isinstance(written, Exception), written
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["verdict"] == "trust" and outcome.code == 0 and content["friction"]["family"] == "sigmoid"
    assert max(content["train"]["relative_error"]) < 0.3 and content["train"]["static"]["rmse"]
    drive = Robot.load(tmp_path / "z1_identified.toml").drive
    assert drive is not None
    off = np.abs(drive.dead_zone.mean(axis=1) - truth().dead_zone.mean(axis=1))
    assert np.median(off) < 0.05  # a wrist whose command is all dead zone is a square wave after a filter
    assert "dead zone forward joint1" in (tmp_path / "identification.html").read_text()
