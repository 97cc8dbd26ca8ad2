"""Where the robots' sources are, and how MuJoCo sees a robot."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of source models beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"shared data is not beside the checkout: {SHARED.name}/ is missing")
    return SHARED


@pytest.fixture(scope="session")
def dynamics():
    """A function that gives MuJoCo's mass matrix and bias torque at a state."""

    def compute(model: mujoco.MjModel, data: mujoco.MjData, qpos: np.ndarray, qvel: np.ndarray):
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass)
        return mass, data.qfrc_bias.copy()

    return compute
