"""What is exported, reloaded by MuJoCo itself, errs as the report says that its static part does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from retorque.identify.commands import IdentifySettings, identify
from retorque.identify.log_options import open_log
from retorque.logs.motion import Motion
from retorque.physics.friction import limited_sign, preset
from retorque.robots.formats.mjcf_writer import write_mjcf
from retorque.robots.robot import Robot
from retorque.work.array import Array


def torque_of(model: mujoco.MjModel, motion: Motion, limit: float) -> Array:
    """(samples, n) MuJoCo's inverse dynamics with its own damping, and its dry friction by the velocity's sign."""
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # dry friction, limits, contact
    data = mujoco.MjData(model)
    out = np.empty_like(motion.q)
    for k in range(len(motion)):
        data.qpos[:], data.qvel[:], data.qacc[:] = motion.q[k], motion.qd[k], motion.qdd[k]
        mujoco.mj_inverse(model, data)
        out[k] = data.qfrc_inverse
    return out + model.dof_frictionloss * limited_sign(motion.qd, limit)


@pytest.mark.parametrize(("name", "friction"), [("z1", "presliding"), ("panda", "full")])
def test_exports_err_in_mujoco_as_the_report_says(
    simulate: Callable[..., Any], tmp_path: Path, name: str, friction: str
) -> None:
    truth = simulate(name, preset(friction), seconds=6.0, rate=200.0)
    motion, rng = truth.motion, np.random.default_rng(0)
    torque = motion.torque + 0.02 * np.std(motion.torque, axis=0) * rng.standard_normal(motion.torque.shape)
    log = tmp_path / "log.npz"
    np.savez(log, time=motion.time, q=motion.q, qd=motion.qd, torque=torque)
    settings = IdentifySettings(
        logs=(log,), robot=name, friction=friction, cutoff=10.0, json=tmp_path / "r.json", export=tmp_path
    )
    for _, written in identify(settings).write_files():
        assert not isinstance(written, Exception), written
    content = json.loads((tmp_path / "r.json").read_text())
    said = np.array(content["train"]["static"]["rmse"])
    assert np.all(said >= 0.99 * np.array(content["train"]["rmse"]))  # friction that a file cannot hold is lost
    seen = open_log(settings, Robot.load(name), (log,), ":").load()
    assert isinstance(seen, Motion)
    for ending in ("xml", "urdf", "toml"):
        path = tmp_path / f"{name}_identified.{ending}"
        text = write_mjcf(Robot.load(path)) if ending == "toml" else path.read_text()
        model = mujoco.MjModel.from_xml_string(text)
        if ending == "urdf":
            model.dof_armature[:] = Robot.load(path).armature  # in a comment of ours: URDF has no rotors
        rmse = np.sqrt(np.mean(np.square(seen.torque - torque_of(model, seen, 0.02)), axis=0))
        assert np.allclose(rmse, said, rtol=1e-6, atol=1e-6), (ending, rmse, said)
