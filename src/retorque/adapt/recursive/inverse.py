"""The command that an estimate of a robot would need for a motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from retorque.adapt.recursive.linear_model import SIGN_WIDTH, LinearModel
from retorque.adapt.recursive.unknowns import (
    ARMATURE,
    BASIS,
    BIAS,
    DEAD_ZONE,
    FRICTION_BACKWARD,
    FRICTION_FORWARD,
    SCALE,
    VISCOUS,
)
from retorque.physics.inertia import nearest_feasible
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array

VELOCITY_SCALES = np.array([1.0, *BASIS, 1.0 / SIGN_WIDTH])
"""Of viscous friction (linear), the friction basis and the bias's step (saturating) [s/rad]."""


def estimate_arrays(model: LinearModel, mean: Array, disturbance: Array) -> dict[str, Array]:
    """What `inverse` needs of an estimate (trials, size), laid out for one selection by direction a tick."""
    joint, inertial = model.unknowns(mean)
    links = inertial.reshape(len(mean), -1, 10)
    bias = joint[..., BIAS]
    step = -0.5 * (bias[..., 0] - bias[..., 1])[..., None]
    viscous, dead, scale = joint[..., VISCOUS], joint[..., DEAD_ZONE], joint[..., SCALE]
    return {
        "inertial": nearest_feasible(links).reshape(len(mean), -1, 1),
        "armature": joint[..., ARMATURE],
        "offset": disturbance - 0.5 * (bias[..., 0] + bias[..., 1]),
        # Viscous, friction basis, and the bias's step, for each direction of motion.
        "forward": np.concatenate([viscous[..., :1], joint[..., FRICTION_FORWARD], step], axis=-1),
        "backward": np.concatenate([viscous[..., 1:], joint[..., FRICTION_BACKWARD], step], axis=-1),
        # Dead zone and drive gain, for each direction of the command.
        "push": np.stack([dead[..., 0], 1.0 + scale[..., 0]]),
        "pull": np.stack([dead[..., 1], 1.0 + scale[..., 1]]),
    }


class Inverse:
    """Inverse dynamics of an estimate, with arrays and algebra of its own: the tick and the learner have one each.

    Args:
        model: of the robot's torques.
        timestep: control period [s].
    """

    def __init__(self, model: LinearModel, timestep: float):
        self.body = RigidBody(model.robot)
        self._model, self._timestep = model, timestep

    def __call__(
        self,
        a: Mapping[str, Array],
        q: Array,
        qd: Array,
        qdd: Array,
        external: Array | float = 0.0,
        given: Array | None = None,
    ) -> Array:
        """The command that gives the estimated robot an acceleration under an external torque, (trials, n) [N·m].

        Where the command that was `given` is known, so is what the drives lost of it: a push that nobody knows of may
        turn them round, and the width of their dead zones is no part of it.
        """
        end = qd + self._timestep * qdd  # friction is paid for at the end of the tick
        shape = np.multiply.outer(end, VELOCITY_SCALES)
        np.tanh(shape[..., 1:], out=shape[..., 1:])
        shape *= np.where(end[..., None] >= 0.0, a["forward"], a["backward"])
        torque = np.matmul(self.body.regressor(q, qd, qdd), a["inertial"])[..., 0]
        torque += shape.sum(axis=-1)
        torque += a["armature"] * qdd
        torque += a["offset"]
        torque -= external
        if given is not None:
            gain = np.where(given > 0.0, a["push"][1], a["pull"][1])
            lost = np.clip(gain * given, -np.maximum(a["pull"][0], 0.0), np.maximum(a["push"][0], 0.0))
            return (torque + lost) / gain
        dead, gain = np.where(torque > 0.0, a["push"], a["pull"])
        return (torque + dead * self._model.sign(torque)) / gain
