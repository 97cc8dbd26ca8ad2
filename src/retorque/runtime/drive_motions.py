"""Motions that `drive` can follow: hold, sines about a pose, or a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.control.action import JointAction, TorqueAction
from retorque.control.reference import Reference
from retorque.control.windowed_sines import WindowedSines
from retorque.logs.table import open_table
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

MOTIONS = ("hold", "sines", "home-sines")
FULL = 4.0
"""Sines that last less are smaller: they begin and end at rest, so a short one would be violent [s]."""
MARGIN = 0.1
"""Distance to the joint limits that sines keep [rad]."""


class SampledMotion(Reference):
    """Rows of a table, straight between them.

    Args:
        time: (rows,) rising [s].
        position: (rows, n) [rad].
        velocity: (rows, n) [rad/s].
    """

    def __init__(self, time: Array, position: Array, velocity: Array):
        self.time, self.position, self.velocity = time - time[0], position, velocity
        self.duration = float(self.time[-1])

    def at(self, time: float) -> JointAction:
        if time >= self.duration:
            return JointAction(self.position[-1], np.zeros_like(self.position[-1]))
        k = max(1, int(np.searchsorted(self.time, time, side="right")))
        share = (time - self.time[k - 1]) / (self.time[k] - self.time[k - 1])
        return JointAction(
            self.position[k - 1] + share * (self.position[k] - self.position[k - 1]),
            self.velocity[k - 1] + share * (self.velocity[k] - self.velocity[k - 1]),
        )


class AsReported:
    """The torque that the robot reports: what is watched when somebody else drives."""

    period = 0.0

    def reset(self, state: State) -> None:
        """Nothing to begin."""

    def act(self, state: State) -> TorqueAction:
        """What the robot says that it was told."""
        return TorqueAction(state.torque)


def make_motion(name: str, robot: Robot, position: Array, duration: float, seed: int, scale: float) -> Reference:
    """The motion of that name, from a robot's present position (n,).

    Args:
        name: one of `MOTIONS`, or a CSV file with time, q1.., qd1.. as `retorque excite` writes it.
        robot: the ideal robot.
        position: where the robot is [rad].
        duration: [s]
        seed: of the sines.
        scale: of their amplitude.
    """
    if name == "hold":
        still = np.stack([position, position])
        return SampledMotion(np.array([0.0, duration]), still, np.zeros_like(still))
    if name in ("sines", "home-sines"):
        centre = position if name == "sines" else np.asarray(robot.home)
        room = np.minimum(centre - robot.lower, robot.upper - centre) - MARGIN
        scale *= min(1.0, duration / FULL)
        amplitude = np.clip(scale * profile_of(robot).tracking_amplitude, 0.0, np.maximum(room, 0.0) / 1.25)
        cycles = (3.0 * duration / 16.0, 7.0 * duration / 16.0)  # the speeds of the tracking bench
        drawn = WindowedSines.sample(centre, amplitude, 1, duration, seed, cycles=cycles)
        return WindowedSines(centre, drawn.amplitude[0], drawn.cycles[0], drawn.phase[0], duration)
    if Path(name).suffix:
        return read_motion(name, robot)
    raise RetorqueError(f"unknown motion '{name}'; it is one of {', '.join(MOTIONS)}, or a CSV file with time, q1, qd1")


def read_motion(path: str | Path, robot: Robot) -> SampledMotion:
    """The motion in a CSV file with columns time, q1.., qd1.."""
    table = open_table(path)
    names = list(table.names or ())
    wanted = ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd") for k in range(robot.n))]
    missing = [name for name in wanted if name not in names]
    if missing or f"q{robot.n + 1}" in names:
        raise RetorqueError(
            f"'{path}' is no motion of '{robot.name}' ({robot.n} joints): it needs the columns time, q1.., qd1.."
        )
    rows = np.concatenate([values for _, values in table.blocks()])[:, [names.index(name) for name in wanted]]
    time, position, velocity = rows[:, 0], rows[:, 1 : 1 + robot.n], rows[:, 1 + robot.n :]
    if len(rows) < 2 or not np.isfinite(rows).all() or np.any(np.diff(time) <= 0.0):
        raise RetorqueError(f"'{path}' must hold finite numbers with rising times; make it with `retorque excite`")
    if np.any(position < robot.lower) or np.any(position > robot.upper):
        raise RetorqueError(f"'{path}' leaves the joint limits of '{robot.name}'; is it a motion of another robot?")
    return SampledMotion(time, position, velocity)


def check_start(motion: Reference, position: Array, robot: Robot, tolerance: float) -> None:
    """Refuse a motion that begins far from where the robot is: its first command would be a jump."""
    action = motion.at(0.0)
    assert isinstance(action, JointAction)
    away = np.abs(action.position - position)
    worst = int(np.argmax(away))
    if not away[worst] <= tolerance:
        raise RetorqueError(
            f"the motion begins {away[worst]:.2f} rad from where {robot.joint_names[worst]} is; move the robot to its "
            f"start first (within {tolerance:g} rad), or choose --motion sines, which begins where the robot is"
        )
