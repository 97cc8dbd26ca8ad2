"""Teacher torques without inverting dynamics in the training loop: A, b and the losses of every recorded state.

With A = M_ξ M₀⁻¹ and b = h_ξ - A h₀, the torque that makes the target move as the ideal robot would under a nominal
torque τ⁰ and an external torque w is B_ξ⁻¹(A (τ⁰ + w) + b - w) (equation 1 and C.1 of the TAM paper).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from retorque.adapt.tam.context import Context, mass_matrices
from retorque.physics.actuator import DEAD_ZONE_SLOPE, effective_torque, losses
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array


def state_labels(
    context: Context, parameters: Parameters, q: Array, qd: Array, command: Array, external: Array
) -> dict[str, Array]:
    """What the teacher needs at true states of targets.

    Args:
        context: the ideal robot's.
        parameters: of each target (trials, ...).
        q: positions (trials, states, n) [rad].
        qd: velocities, the same [rad/s].
        command: commands at these states, the same [N·m].
        external: external torques, the same [N·m].
    """
    robot = context.robot
    inertial = parameters.total_inertial(robot)
    target_mass, target_bias = [], []
    for trial in range(len(q)):
        body = RigidBody(robot, inertial[trial], parameters.armature[trial])
        target_mass.append(mass_matrices(body, q[trial]))
        target_bias.append(body.bias(q[trial], qd[trial]))
    mass, bias = np.stack(target_mass), np.stack(target_bias)
    ideal_mass, ideal_bias = mass_matrices(context.body, q), context.body.bias(q, qd)
    inverse = np.linalg.inv(ideal_mass)
    matrix = mass @ inverse
    spread = parameters[np.arange(len(q))[:, None]]  # every state of a trial has the trial's parameters
    moving = effective_torque(command, qd, spread) + external - bias
    probe_matrix, probe_bias = context.probe_matrices(q, qd)
    return {
        "A": matrix,
        "b": bias - np.matmul(matrix, ideal_bias[..., None])[..., 0],
        "losses": losses(qd, spread),
        "ideal_mass": ideal_mass,
        "ideal_inverse": inverse,
        "ideal_bias": ideal_bias,
        "acceleration": np.linalg.solve(mass, moving[..., None])[..., 0],
        "probe_matrix": probe_matrix,
        "probe_bias": probe_bias,
        "external": external,
        "command": command,
    }


def teacher(xp: Any, label: dict[str, Any], nominal: Any) -> Any:
    """The corrected torque (..., n) [N·m] for nominal torques (..., n), in NumPy or PyTorch.

    `label` holds A (..., n, n), b, losses, external (..., n), and the drive's dead_zone and torque_scale (..., n, 2).
    """
    external = label["external"]
    pushed = xp.matmul(label["A"], (nominal + external)[..., None])[..., 0] + label["b"] - external
    return inverse_drive(xp, pushed + label["losses"], label["dead_zone"], label["torque_scale"])


def inverse_drive(xp: Any, torque: Any, dead_zone: Any, torque_scale: Any) -> Any:
    """B.7 and B.8, in NumPy or PyTorch; the same as `retorque.physics.actuator.inverse_drive`."""
    width = xp.where(torque >= 0.0, dead_zone[..., 0], dead_zone[..., 1])
    size = abs(torque)
    outside = xp.sign(torque) * (size - DEAD_ZONE_SLOPE * width + width)
    scaled = xp.where(size <= DEAD_ZONE_SLOPE * width, torque / DEAD_ZONE_SLOPE, outside)
    return scaled / xp.where(scaled >= 0.0, torque_scale[..., 0], torque_scale[..., 1])


def forward_drive(xp: Any, command: Any, dead_zone: Any, torque_scale: Any) -> Any:
    """B.1 and B.4, in NumPy or PyTorch; the same as `retorque.physics.actuator.drive`."""
    scaled = xp.where(command >= 0.0, torque_scale[..., 0], torque_scale[..., 1]) * command
    width = xp.where(scaled >= 0.0, dead_zone[..., 0], dead_zone[..., 1])
    size = abs(scaled)
    outside = xp.sign(scaled) * (size - width + DEAD_ZONE_SLOPE * width)
    return xp.where(size <= width, DEAD_ZONE_SLOPE * scaled, outside)
