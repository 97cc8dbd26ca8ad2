"""A picture of a drawing: what is on the board, the pen's way, force and pitch over time."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np

from retorque.tasks.comply.coverage import wiped
from retorque.tasks.comply.draw_task import DrawTask, StrokeDrawing
from retorque.work.files import write_whole

matplotlib.use("Agg")

import matplotlib.pyplot as plt

INK, PLAN, GOOD, BAD = "#1b2330", "#9aa5b5", "#0f7f93", "#e0562b"
"""Colours: text, what was asked, what was done, what is felt."""
TOUCHING = 0.05
"""Force above which the pen leaves ink [N]."""
LEAST = 10.0
"""Half the width of the board that a picture shows at least [mm]."""


def picture(task: DrawTask, drawing: StrokeDrawing, path: str | Path, trial: int = 0, tool: float = 0.0) -> Path:
    """Write the picture of one trial as PNG; the path.

    Args:
        task: the board.
        drawing: what happened.
        path: of the file.
        trial: which.
        tool: width of an eraser, as a share of the drawing's size; 0: a pen.
    """
    right, up, normal = task.plane.axes
    local = drawing.tip[:, trial] - task.plane.centre
    asked = drawing.desired - task.plane.centre
    ink = drawing.force[:, trial] > TOUCHING
    figure, axes = plt.subplots(2, 2, figsize=(10.0, 7.0), layout="constrained")
    board, way, force, pitch = axes.ravel()
    board.plot(
        1e3 * asked[drawing.drawing] @ right, 1e3 * asked[drawing.drawing] @ up, ".", color=PLAN, ms=2, label="asked"
    )
    board.plot(
        1e3 * local[ink] @ right, 1e3 * local[ink] @ up, ".", color=GOOD, ms=3, label="eraser" if tool else "ink"
    )
    if tool:
        size, touched = task.site.strokes.size, local[ink & drawing.drawing] / task.site.strokes.size
        half = 500.0 * size
        clean = wiped(np.stack([touched @ right, touched @ up], axis=1), 1.0, 1.0, tool)
        board.imshow(clean, origin="lower", extent=(-half, half, -half, half), cmap="Greens", vmin=0.0, vmax=3.0)
    board.set_aspect("equal")
    for low, high, widen in ((*board.get_xlim(), board.set_xlim), (*board.get_ylim(), board.set_ylim)):
        middle, reach = 0.5 * (low + high), max(0.5 * (high - low), LEAST)
        widen(middle - reach, middle + reach)
    board.set(title="on the board (green: wiped)" if tool else "on the board", xlabel="right [mm]", ylabel="up [mm]")
    board.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for name, axis in (("right", right), ("up", up), ("out of the board", normal)):
        (line,) = way.plot(drawing.time, 1e3 * local @ axis, label=name)
        way.plot(drawing.time, 1e3 * asked @ axis, "--", color=line.get_color(), lw=0.8)
    way.set(title="pen (dashed: asked)", xlabel="time [s]", ylabel="[mm]")
    way.legend(loc="upper center", ncols=3)
    way.margins(y=0.2)
    force.plot(drawing.time, drawing.force[:, trial], color=GOOD, label="true")
    force.plot(drawing.time, drawing.felt[:, trial], color=BAD, lw=0.8, label="felt")
    force.axhline(task.site.strokes.force, color=PLAN, ls="--", label="commanded")
    force.set(title="force along the normal", xlabel="time [s]", ylabel="[N]")
    force.legend(loc="lower center")
    pitch.plot(drawing.time, drawing.pitch[:, trial], color=GOOD, label="base pitch")
    pitch.plot(drawing.time, drawing.turned[:, trial], color=BAD, label="hand's orientation error")
    pitch.set(title="orientation", xlabel="time [s]", ylabel="[rad]")
    pitch.legend(loc="upper center", ncols=2)
    pitch.margins(y=0.2)
    for part in axes.ravel():
        part.grid(color="#dfe4ec")
        part.tick_params(colors=INK)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    plt.close(figure)
    return write_whole(path, buffer.getvalue())
