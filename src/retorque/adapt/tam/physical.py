"""The parameter object as numbers between -1 and 1, joint by joint: what `physpred` predicts."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.physics.parameters import Parameters, bounds
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PAIRS = (
    "torque_scale",
    "torque_bias",
    "dead_zone",
    "viscous",
    "friction_amplitude",
    "friction_slope",
    "friction_shift",
)
PER_JOINT = 5 + 2 * len(PAIRS)
"""Mass scale, centre (3), armature of the joint's own link, and two directions of each pair."""
PAYLOAD = 4
"""Mass and centre (3)."""


class PhysicalRange:
    """The middle and half width of every number over a robot's profile."""

    def __init__(self, context: Context):
        robot = context.robot
        if len(robot.moving_links) != robot.n:
            raise RetorqueError(f"robot '{robot.name}' has links without a joint of their own; physpred needs one each")
        low, high = bounds(robot, context.profile)
        self._joint = _middle_and_half(_joint_numbers(low), _joint_numbers(high))
        self._payload = _middle_and_half(_payload_numbers(low), _payload_numbers(high))

    def encode(self, parameters: Parameters) -> tuple[Array, Array]:
        """Numbers of each joint (..., n, 19) and of the payload (..., 4)."""
        joint = (_joint_numbers(parameters) - self._joint[0]) / self._joint[1]
        payload = (_payload_numbers(parameters) - self._payload[0]) / self._payload[1]
        return joint, payload

    def decode(self, joint: Array, payload: Array) -> Parameters:
        """The parameters of such numbers, kept inside the profile."""
        j = np.clip(joint, -1.0, 1.0) * self._joint[1] + self._joint[0]
        p = np.clip(payload, -1.0, 1.0) * self._payload[1] + self._payload[0]
        pairs = {name: j[..., 5 + 2 * i : 7 + 2 * i] for i, name in enumerate(PAIRS)}
        pairs["friction_slope"] = np.exp(pairs["friction_slope"])
        return Parameters(
            mass_scale=j[..., 0],
            centre_offset=j[..., 1:4],
            armature=j[..., 4],
            payload_mass=p[..., 0],
            payload_centre=p[..., 1:],
            **pairs,
        )


def _joint_numbers(p: Parameters) -> Array:
    pairs = [np.log(p.friction_slope) if name == "friction_slope" else getattr(p, name) for name in PAIRS]
    return np.concatenate([p.mass_scale[..., None], p.centre_offset, p.armature[..., None], *pairs], axis=-1)


def _payload_numbers(p: Parameters) -> Array:
    return np.concatenate([np.asarray(p.payload_mass)[..., None], p.payload_centre], axis=-1)


def _middle_and_half(low: Array, high: Array) -> tuple[Array, Array]:
    return 0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-9)
