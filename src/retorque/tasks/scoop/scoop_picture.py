"""A picture of an episode: heights of spoon, x_des and x_ref over time, its way seen from above, and what was felt."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib
import numpy as np

from retorque.tasks.scoop.pose_source import PERIOD
from retorque.tasks.scoop.scoop_frames import Frames
from retorque.tasks.scoop.scoop_task import BOWL, BOWL_HALF, STOP
from retorque.work.files import write_whole

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLOURS = {"x_des": "#9aa5b5", "x_ref": "#e0562b", "seen": "#0f7f93"}
"""What was asked, what compliance made of it, and where the spoon was."""


def scoop_picture(episode: Frames, height: float, path: str | Path) -> Path:
    """Write the picture as PNG; the path.

    Args:
        episode: as recorded.
        height: of the table in truth [m].
        path: of the file.
    """
    time = PERIOD * np.arange(len(episode["seen"]))
    figure, (up, above, felt) = plt.subplots(1, 3, figsize=(13.0, 4.0), layout="constrained")
    names = {"x_des": "x_des", "x_ref": "x_ref", "seen": "spoon"}
    for name, label in names.items():
        place = 1e3 * episode[name][:, :3]
        up.plot(time, place[:, 2], color=COLOURS[name], label=label)
        above.plot(-place[:, 1], place[:, 0], color=COLOURS[name], label=label)
    up.axhline(1e3 * height, color="#1b2330", linestyle=":", label="table, hidden")
    up.set(title="height", xlabel="time [s]", ylabel="[mm]")
    up.legend()
    ball = 1e3 * episode["seen"][:, 9:]
    above.plot(-ball[:, 1], ball[:, 0], ".", color="#d9a441", ms=3, label="ball")
    side = 1e3 * BOWL_HALF * np.array([-1.0, 1.0, 1.0, -1.0, -1.0])
    above.plot(-1e3 * BOWL[1] + side, 1e3 * BOWL[0] + 1e3 * BOWL_HALF * np.array([-1, -1, 1, 1, -1]), color="#1b2330")
    above.axhline(1e3 * STOP, color="#1b2330", linestyle=":")
    above.set(title="from above: bowl, stopper (dotted)", xlabel="right [mm]", ylabel="forward [mm]", aspect="equal")
    above.legend()
    for k, name in enumerate("xyz"):
        felt.plot(time, episode["wrench"][:, k], label=name)
    felt.set(title="felt at the lip", xlabel="time [s]", ylabel="[N]")
    felt.legend()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    plt.close(figure)
    return write_whole(path, content.getvalue())
