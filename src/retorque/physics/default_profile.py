"""The ranges of what may be hidden about a robot: its card's, or sensible ones made from its limits and inertias."""

from __future__ import annotations

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot

ARM_TORQUE = 30.0
"""A joint of this torque limit or more gets the full ranges of Table B.1; weaker ones get a share [N·m]."""
BANDWIDTH = 6.0
"""Natural frequency of default impedance gains [rad/s]."""
AMPLITUDE = float(np.deg2rad(30.0))
"""Of the motion, at the most [rad]."""
SAMPLING = 1e-3
"""Control period that gains must be stable at [s]."""
STABLE = 0.5
"""Largest share of its velocity that damping may take from a joint within one period; beyond 2 it is unstable."""
POSES, SEED = 64, 0
"""Drawn from the range of the motion, whose lightest pose limits the gains."""


def profile_of(robot: Robot) -> Profile:
    """The card's profile, or a default one.

    Defaults: every torque-like range is Table B.1's times min(1, limit / 30 N·m); where the limit is unknown, twice the
    largest gravity torque plus the torque of 10 rad/s² stands for it. Stiffness gives the home inertia a natural
    frequency of 6 rad/s, or less where a pose of the motion is too light for it.
    """
    if robot.profile is not None:
        return robot.profile
    n = robot.n
    inertia, strength = _strength(robot)
    share = np.minimum(1.0, strength / ARM_TORQUE)
    room = np.where(np.isfinite(robot.upper - robot.lower), robot.upper - robot.lower, 2.0 * np.pi)
    reach = np.minimum(robot.home - robot.lower, robot.upper - robot.home)
    amplitude = np.clip(np.where(np.isfinite(reach), 0.7 * reach, 1.0), 0.0, AMPLITUDE)
    lightest = 1.0 / np.max(np.diagonal(_mobility(robot, amplitude), axis1=-2, axis2=-1), axis=0)
    stiffness = np.minimum(inertia * BANDWIDTH**2 + share * 10.0, strength / 0.3)
    stiffness = np.minimum(stiffness, lightest * (0.5 * STABLE / SAMPLING) ** 2)  # critical damping stays stable too
    return Profile(
        armature_min=0.1 * np.maximum(robot.armature, 0.02 * inertia),
        armature_max=2.0 * np.maximum(robot.armature, 0.05 * inertia),
        stiffness=2.0 * stiffness,
        tracking_stiffness=stiffness,
        tracking_damping=None,
        tracking_amplitude=amplitude,
        waypoint_delta=np.minimum(np.deg2rad(100.0), 0.5 * room),
        command_noise_white=3.0 * share,
        command_noise_walk=0.2 * share,
        friction_max=3.0 * share,
        viscous_max=2.0 * share,
        bias_max=1.0 * share,
        dead_zone_max=1.0 * share,
        payload_mass=(0.0, 1.5 * float(np.min(share[: max(1, n // 2)]))),
        payload_centre=0.075 * float(np.min(share)) ** 0.5,
        centre_offset=0.01 * float(np.min(share)) ** 0.5,
    )


def critical_damping(robot: Robot, stiffness: np.ndarray, amplitude: np.ndarray | float = AMPLITUDE) -> np.ndarray:
    """Kd = 2 sqrt(Kp diag M(home)), (..., n) [N·m·s/rad], or less: a joint must be stable all over the motion.

    At home a joint may carry the whole arm, elsewhere little: damping for the heavy pose would shake the light one. So
    the largest eigenvalue of M⁻¹ Kd over the poses within `amplitude` (n,) [rad] of home is kept below a share of 1/dt.
    """
    damping = 2.0 * np.sqrt(stiffness * np.diagonal(RigidBody(robot).mass_matrix(robot.home)))
    mobility = _mobility(robot, amplitude)
    lightest = 1.0 / np.max(np.diagonal(mobility, axis1=-2, axis2=-1), axis=0)
    shaky = _fastest(mobility, damping) * SAMPLING > STABLE
    damping = np.where(shaky, np.minimum(damping, STABLE / SAMPLING * lightest), damping)
    return damping * np.where(shaky, np.minimum(1.0, STABLE / SAMPLING / _fastest(mobility, damping)), 1.0)


def damping_rate(robot: Robot, damping: np.ndarray, poses: np.ndarray) -> float:
    """The largest eigenvalue of M⁻¹ Kd over poses (..., n) [1/s]; sampled at dt, more than 2 / dt is unstable."""
    return float(np.max(_fastest(np.linalg.inv(RigidBody(robot).mass_matrix(poses)), damping)))


def _fastest(mobility: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """(..., 1) the largest eigenvalue of M⁻¹ Kd [1/s]; that of the symmetric √Kd M⁻¹ √Kd is the same."""
    root = np.sqrt(damping)[..., None, :]
    turned = root[..., :, None] * mobility * root[..., None, :]
    return np.max(np.linalg.eigvalsh(turned), axis=(-2, -1))[..., None]


def _mobility(robot: Robot, amplitude: np.ndarray | float) -> np.ndarray:
    """(poses, n, n) inverse mass matrices over the range of a motion around home."""
    offsets = np.random.default_rng(SEED).uniform(-1.0, 1.0, (POSES, robot.n))
    return np.linalg.inv(RigidBody(robot).mass_matrix(robot.home + amplitude * offsets))


def _strength(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Home inertia (n,) [kg·m²] and torque limit, known or guessed, (n,) [N·m]."""
    body = RigidBody(robot)
    inertia = np.diagonal(body.mass_matrix(robot.home)).copy()
    low = np.where(np.isfinite(robot.lower), robot.lower, -np.pi)
    high = np.where(np.isfinite(robot.upper), robot.upper, np.pi)
    poses = np.random.default_rng(0).uniform(low, high, (64, robot.n))
    need = 2.0 * np.max(np.abs(body.gravity(poses)), axis=0) + 10.0 * inertia
    return inertia, np.where(np.isfinite(robot.torque_limit), robot.torque_limit, need)
