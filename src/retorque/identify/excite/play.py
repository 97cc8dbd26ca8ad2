"""An exciting motion as a file a robot can play, and as a picture."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from retorque.identify.excite.excitation import Excited
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.files import write_whole


def samples(
    excited: Excited, robot: Robot, rate: float, approach_speed: float = 0.15, acceleration: Array | float = np.inf
) -> tuple[Array, ...]:
    """Times (rows,), positions, velocities, accelerations (rows, n) and whether the row belongs to the exciting part.

    The motion goes from home to the start, through every period, and back, each way at rest at both ends.

    Args:
        excited: the optimised trajectory.
        robot: its home pose is where the motion begins and ends.
        rate: rows a second [Hz].
        approach_speed: part of the velocity limits for the ways from and to home.
        acceleration: largest on these ways, (n,) or one for all [rad/s²].
    """
    fourier = excited.trajectory
    count = round(fourier.period * excited.repeats * rate)
    middle = fourier.at(np.arange(count + 1) / rate)
    home = np.asarray(robot.home, dtype=float)
    limit = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, 2.0)
    # a quintic from rest to rest peaks at 1.875 times its mean speed, and at 5.7736 way / time²
    way = np.abs(middle[0][0] - home)
    slowest = np.maximum(1.875 * way / (approach_speed * limit), np.sqrt(5.7736 * way / acceleration))
    seconds = max(1.0, float(np.max(slowest)))
    there = _quintic(home, middle[0][0], seconds, rate)
    back = _quintic(middle[0][-1], home, seconds, rate)
    parts = [tuple(x[:-1] for x in there), tuple(x[:-1] for x in middle), back]
    q, qd, qdd = (np.concatenate([part[k] for part in parts]) for k in range(3))
    exciting = np.concatenate([np.full(len(part[0]), index == 1) for index, part in enumerate(parts)])
    return np.arange(len(q)) / rate, q, qd, qdd, exciting


def _quintic(start: Array, end: Array, seconds: float, rate: float) -> tuple[Array, Array, Array]:
    count = int(np.ceil(seconds * rate))
    s = np.arange(count + 1)[:, None] / count
    way = end - start
    t = count / rate
    return (
        start + way * (10 * s**3 - 15 * s**4 + 6 * s**5),
        way * (30 * s**2 - 60 * s**3 + 30 * s**4) / t,
        way * (60 * s - 180 * s**2 + 120 * s**3) / t**2,
    )


def write_csv(path: Path, rows: tuple[Array, ...]) -> Path:
    """Time, positions, velocities, accelerations and a flag for the exciting part, with a header."""
    time, q, qd, qdd, exciting = rows
    n = q.shape[1]
    head = ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "qdd") for k in range(n)), "exciting"]
    text = io.StringIO()
    text.write(",".join(head) + "\n")
    np.savetxt(text, np.column_stack([time, q, qd, qdd, exciting]), fmt="%.7g", delimiter=",")
    return write_whole(path, text.getvalue())


def write_plot(path: Path, rows: tuple[Array, ...], robot: Robot) -> Path:
    """Positions, velocities and accelerations of every joint, as parts of their limits."""
    from matplotlib.figure import Figure

    time, q, qd, qdd, exciting = rows
    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    for axis, values, label in zip(axes, (q, qd, qdd), ("position [rad]", "velocity [rad/s]", "acceleration [rad/s²]")):
        for k, name in enumerate(robot.joint_names):
            axis.plot(time, values[:, k], lw=1.1, label=name)
        axis.axvspan(time[exciting][0], time[exciting][-1], color="0.95", zorder=-1)
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_title(f"{robot.name}: exciting motion (grey), with the way from home and back")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return write_whole(path, picture.getvalue())
