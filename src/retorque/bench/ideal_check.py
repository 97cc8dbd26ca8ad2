"""Whether the ideal robot itself copes with a bench; where it does not, no figure of the bench means anything."""

from __future__ import annotations

import numpy as np

from retorque.loop.trace import Trace
from retorque.physics.default_profile import damping_rate
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

SATURATED = 0.25
"""Share of a trial's time that a joint of the ideal robot may spend at its torque limit."""
SHAKING = 3.0
"""How far its velocity may be from the reference's, as a multiple of that (RMS)."""
UNSTABLE = 1.9
"""Share of a joint's velocity that damping may take within one tick; beyond it the joint swings back and forth, which
rows that are kept once in ten ticks would not show."""
THIN = 20
"""Every so many kept rows are looked at for it."""


def check_ideal(
    robot: Robot,
    trace: Trace,
    diverged: Array,
    reference: Array | None = None,
    *,
    damping: Array | None = None,
    timestep: float = 1e-3,
) -> None:
    """Refuse a bench whose ideal robot diverges, saturates or oscillates.

    Args:
        robot: the ideal robot.
        trace: how it moved.
        diverged: (trials,) whose simulation broke down.
        reference: (ticks, trials, n) where it should have been [rad], where it follows joint motion undisturbed.
        damping: of a joint impedance law, (n,) [N·m·s/rad].
        timestep: control period [s].
    """
    joints = robot.joint_names
    if np.any(diverged) or not np.all(np.isfinite(trace.position)):
        raise _refused(robot, "'s simulation diverges")
    limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, np.inf)
    share = np.mean(np.abs(trace.torque) >= limit * (1.0 - 1e-9), axis=0)  # (trials, n)
    if np.max(share) > SATURATED:
        joint = joints[int(np.argmax(np.max(share, axis=0)))]
        raise _refused(robot, f" spends {100.0 * np.max(share):.0f} % of a trial at the torque limit of {joint}")
    if damping is not None and damping_rate(robot, damping, trace.position[::THIN]) * timestep > UNSTABLE:
        raise _refused(robot, " oscillates from tick to tick")
    if reference is None:
        return
    wanted = np.gradient(reference, trace.time, axis=0)
    beside = np.sqrt(np.mean((np.gradient(trace.position, trace.time, axis=0) - wanted) ** 2, axis=0))
    speed = np.sqrt(np.mean(wanted**2, axis=0))
    ratio = beside / np.maximum(speed, 1e-3)
    if np.max(ratio) > SHAKING:
        joint = joints[int(np.argmax(np.max(ratio, axis=0)))]
        raise _refused(robot, f" oscillates or falls far behind at {joint}")


def _refused(robot: Robot, what: str) -> RetorqueError:
    return RetorqueError(
        f"the ideal '{robot.name}'{what} under this bench's gains, so no figure would mean anything; give its card a "
        "[profile] with a tracking_amplitude, tracking_stiffness and tracking_damping that it can follow"
    )
