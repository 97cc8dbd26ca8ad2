"""How MuJoCo sees a robot."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest


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
