"""The picture of a run: states, parameters with their bands, confidence and mode, plan age, and the motion itself."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.run import RunTrace
from retorque.work.array import Array
from retorque.work.files import write_whole

COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")
POSES = 14
"""Poses that the motion is drawn in."""


def run_picture(task: MpcTask, trace: RunTrace, policy: str, path: Path) -> Path:
    """Draw a run into a PNG file."""
    size = task.free.size
    figure = Figure(figsize=(11.0, 9.0 + 0.6 * size), layout="constrained")
    axes = figure.subplots(4 + size, 1, height_ratios=[2.2, *[1.3] * size, 1.0, 0.8, 2.4])
    said = f"reached at {trace.reached:.2f} s" if np.isfinite(trace.reached) else "target not reached"
    figure.suptitle(f"{task.name}, {policy}: {said}")
    _states(axes[0], task, trace)
    for k in range(size):
        _parameter(axes[1 + k], task, trace, k)
    _confidence(axes[1 + size], trace)
    axes[2 + size].plot(trace.time, 1e3 * trace.age, color="tab:gray", lw=0.8)
    axes[2 + size].set_ylabel("plan age [ms]")
    axes[2 + size].set_xlabel("time [s]")
    for axis in axes[: 3 + size]:
        axis.set_xlim(0.0, trace.time[-1])
        if np.isfinite(trace.reached):
            axis.axvline(trace.reached, color="black", lw=0.8, ls=":")
    _motion(axes[3 + size], task, trace)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return write_whole(path, buffer.getvalue())


def _states(axis: Axes, task: MpcTask, trace: RunTrace) -> None:
    for k, joint in enumerate(task.robot.joints):
        colour = COLOURS[k % len(COLOURS)]
        unit = "m" if joint.kind == "prismatic" else "rad"
        axis.plot(trace.time, trace.estimates[:, k], color=colour, lw=0.6, alpha=0.6)
        axis.plot(trace.time, trace.states[:, k], color=colour, lw=1.4, label=f"{joint.name} [{unit}]")
        axis.axhline(task.cost.target[k], color=colour, lw=0.6, ls="--")
    axis.set_ylabel("positions (thin: estimate)")
    axis.legend(loc="upper right", ncols=2, fontsize=8)


def _parameter(axis: Axes, task: MpcTask, trace: RunTrace, k: int) -> None:
    low = np.maximum(trace.p[:, k] - 1.96 * trace.deviation[:, k], task.free.lower[k])
    high = np.minimum(trace.p[:, k] + 1.96 * trace.deviation[:, k], task.free.upper[k])
    axis.fill_between(trace.time, low, high, color="tab:blue", alpha=0.2, lw=0, label="95 % band")
    axis.plot(trace.time, trace.p[:, k], color="tab:blue", lw=1.2, label="believed")
    axis.plot(trace.time, trace.truth[:, k], color="black", lw=1.0, ls="--", label="true")
    found = trace.time[trace.changed]
    axis.plot(found, np.full(len(found), task.free.lower[k]), "^", color="tab:red", ms=5, label="change found")
    unit = f" [{task.free.units[k]}]" if task.free.units[k] else ""
    axis.set_ylabel(task.free.labels[k] + unit, fontsize=9)
    if k == 0:
        axis.legend(loc="upper right", ncols=4, fontsize=8)


def _confidence(axis: Axes, trace: RunTrace) -> None:
    axis.plot(trace.time, trace.confidence, color="tab:green", lw=1.0)
    axis.fill_between(trace.time, 0.0, 1.0, where=trace.exploring, color="tab:orange", alpha=0.3, lw=0)
    axis.set_ylim(0.0, 1.05)
    axis.set_ylabel("confidence\n(shaded: exploring)", fontsize=8)


def _motion(axis: Axes, task: MpcTask, trace: RunTrace) -> None:
    """The robot's joints and its end, seen from the side, from light to dark."""
    last = len(trace.time) - 1
    if np.isfinite(trace.reached):
        last = min(last, round(trace.reached / task.timestep) + 10)
    body = RigidBody(task.robot)
    frames = [Frame(link=link.name) for link in task.robot.moving_links] + [task.robot.end_effector]
    for index, row in enumerate(np.linspace(0, last, POSES).astype(int)):
        points = np.array([_point(body, frame, trace.states[row, : task.robot.n]) for frame in frames])
        shade = 0.15 + 0.85 * index / (POSES - 1)
        axis.plot(points[:, 0], points[:, 2], "-o", color="tab:blue", alpha=shade, ms=3, lw=1.5)
        axis.annotate(f"{trace.time[row]:.1f}", (points[-1, 0], points[-1, 2]), fontsize=6, alpha=shade)
    axis.set_aspect("equal")
    axis.set_xlabel("x [m]; numbers are seconds")
    axis.set_ylabel("z [m]")


def _point(body: RigidBody, frame: Frame, q: Array) -> Array:
    return body.frame_pose(frame, q)[0]
