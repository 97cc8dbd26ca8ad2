"""A motion as files that robots' own controllers play: URScript, JSON at 1 kHz for libfranka, ROS JointTrajectory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.files import write_whole

UR_PERIOD = 0.008
"""Of a `servoj`: four cycles of an e-series controller, one of a CB3 [s]."""
UR_LOOKAHEAD, UR_GAIN = 0.05, 500
"""Of a `servoj`: short enough for a motion of half a hertz [s], and stiff within 100 to 2000."""
FRANKA_PERIOD = 0.001
"""libfranka asks for a new position every cycle [s]."""
ROS_PERIOD = 0.02
"""Between points; a controller joins positions, velocities and accelerations by quintic splines [s]."""

Rows = tuple[Array, Array, Array, Array]
"""Times (rows,), positions, velocities and accelerations (rows, n)."""


def resampled(rows: tuple[Array, ...], period: float) -> Rows:
    """A motion at another period, by cubic Hermite splines through positions and velocities.

    Args:
        rows: times (rows,), positions, velocities, accelerations (rows, n), evenly sampled.
        period: [s]; the last row is always the motion's end.
    """
    time, q, qd, qdd = rows[:4]
    at = np.append(np.arange(0.0, time[-1] - 0.5 * period, period), time[-1])
    step = float(time[1] - time[0])
    index = np.clip((at / step).astype(int), 0, len(time) - 2)
    s = ((at - time[index]) / step)[:, None]

    def hermite(value: Array, rate: Array) -> Array:
        first, last = value[index], value[index + 1]
        start, end = step * rate[index], step * rate[index + 1]
        bend, twist = s * s * (3.0 - 2.0 * s), s * (1.0 - s)
        return first + bend * (last - first) + twist * ((1.0 - s) * start - s * end)

    acceleration = qdd[index] + s * (qdd[index + 1] - qdd[index])
    return at, hermite(q, qd), hermite(qd, qdd), acceleration


def write_urscript(path: Path, rows: tuple[Array, ...], robot: Robot) -> Path:
    """A URScript program: slowly to home, then `servoj` every 8 ms, then stop."""
    _, q, _, _ = resampled(rows, UR_PERIOD)
    lines = [
        "def retorque_excitation():",
        f"  # {robot.title or robot.name}: {len(q)} targets {1000 * UR_PERIOD:g} ms apart, joints in rad",
        f"  movej({_list(q[0])}, a=0.5, v=0.3)",
        *(f"  servoj({_list(pose)}, t={UR_PERIOD:g}, lookahead_time={UR_LOOKAHEAD:g}, gain={UR_GAIN})" for pose in q),
        "  stopj(2.0)",
        "end",
        "",
    ]
    return write_whole(path, "\n".join(lines))


def write_franka_json(path: Path, rows: tuple[Array, ...], robot: Robot) -> Path:
    """Joint positions, velocities and accelerations at 1 kHz, as a libfranka or franky callback plays them."""
    time, q, qd, qdd = resampled(rows, FRANKA_PERIOD)
    content = {
        "robot": robot.name,
        "joint_names": list(robot.joint_names),
        "period_s": FRANKA_PERIOD,
        "start_rad": _rounded(q[0]),
        "time_s": [round(float(t), 6) for t in time],
        "position_rad": [_rounded(row) for row in q],
        "velocity_rad_s": [_rounded(row) for row in qd],
        "acceleration_rad_s2": [_rounded(row) for row in qdd],
    }
    return write_whole(path, json.dumps(content) + "\n")


def write_ros_yaml(path: Path, rows: tuple[Array, ...], robot: Robot) -> Path:
    """A trajectory_msgs/JointTrajectory message, for `ros2 topic pub --once` and joint_trajectory_controller.

    The first point is 3 s after the start, so that an arm that stands at home nearly is led there gently.
    """
    lines = ["header:", "  stamp: {sec: 0, nanosec: 0}", "  frame_id: ''", "joint_names:"]
    lines += [f"- {json.dumps(name)}" for name in robot.joint_names]
    lines.append("points:")
    for t, q, qd, qdd in zip(*resampled(rows, ROS_PERIOD), strict=True):
        nanoseconds = round((3.0 + float(t)) * 1e9)
        lines += [
            f"- positions: {_list(q)}",
            f"  velocities: {_list(qd)}",
            f"  accelerations: {_list(qdd)}",
            f"  time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}",
        ]
    return write_whole(path, "\n".join(lines) + "\n")


WRITERS = {"urscript": write_urscript, "franka": write_franka_json, "ros": write_ros_yaml}
ENDINGS = {"urscript": "script", "franka": "franka.json", "ros": "ros.yaml"}
"""How the files' names end."""


def _rounded(values: Array) -> list[float]:
    return [round(float(value), 9) + 0.0 for value in values]


def _list(values: Array) -> str:
    return "[" + ", ".join(f"{value:.9f}" for value in _rounded(values)) + "]"
