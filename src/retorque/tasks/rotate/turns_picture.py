"""A picture of an object that was turned: its way against what was asked, and the forces on it."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np

from retorque.tasks.rotate.object_turns import ObjectTurns, angles_about
from retorque.work.files import write_whole

matplotlib.use("Agg")

import matplotlib.pyplot as plt

PLAN = "#9aa5b5"
"""Colour of what was asked."""


def picture(turns: ObjectTurns, path: str | Path, trial: int = 0) -> Path:
    """Write the picture of one trial as PNG; the path."""
    time, poses = np.array(turns.time), np.array(turns.poses)[:, trial]
    asked = np.array([turns.schedule.at(t - turns.begin)[0] for t in time])
    begun = int(np.searchsorted(time, turns.begin))
    figure, (way, turn, force) = plt.subplots(3, 1, figsize=(9.0, 8.0), layout="constrained", sharex=True)
    for k, name in enumerate("xyz"):
        (line,) = way.plot(time, 1e3 * (poses[:, k] - poses[begun, k]), label=name)
        way.plot(time, 1e3 * asked[:, k], "--", lw=0.8, color=line.get_color())
        angles = angles_about(poses[:, 3:], np.eye(3)[k], begun)
        turn.plot(time, np.rad2deg(angles), label=name, color=line.get_color())
        turn.plot(time, np.rad2deg(asked[:, 3 + k]), "--", lw=0.8, color=line.get_color())
    forces, felt = np.array(turns.forces)[:, trial], np.array(turns.felt)
    for k in range(forces.shape[1]):
        (line,) = force.plot(time, forces[:, k], label=f"contact {k + 1}")
        if len(felt):
            force.plot(time, felt[:, trial, k], lw=0.6, color=line.get_color(), alpha=0.6)
    way.set(title="the object's way (dashed: asked)", ylabel="[mm]")
    turn.set(title="its rotation (dashed: asked)", ylabel="[deg]")
    force.set(title="contact forces (thin: felt)", xlabel="time [s]", ylabel="[N]")
    for part in (way, turn, force):
        part.axvline(turns.begin, color=PLAN, lw=0.8)
        part.grid(color="#dfe4ec")
        part.legend(loc="upper left", ncols=3)
        part.margins(y=0.2)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    plt.close(figure)
    return write_whole(path, buffer.getvalue())
