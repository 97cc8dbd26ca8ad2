"""The curves of a training as a picture: every figure that was noted, over its steps."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from retorque.work.files import write_whole

ACROSS = 3
"""Panels in a row."""


def draw_curves(points: list[dict[str, Any]], path: Path) -> Path | None:
    """One panel a figure; None, and no picture, where nothing was noted.

    Args:
        points: as `RunFolder.metrics` gives them, each with its step.
        path: the picture, .png.
    """
    names = [name for name in dict.fromkeys(key for point in points for key in point) if name != "step"]
    lines = {
        name: [(point["step"], float(point[name])) for point in points if "step" in point and name in point]
        for name in names
    }
    lines = {name: line for name, line in lines.items() if line}
    if not lines:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-len(lines) // ACROSS)
    figure, axes = pyplot.subplots(rows, ACROSS, figsize=(4.0 * ACROSS, 2.4 * rows), squeeze=False)
    for axis, (name, line) in zip(axes.flat, lines.items(), strict=False):
        axis.plot(*zip(*line, strict=True), linewidth=1.2)
        axis.set_title(name.replace("_", " "), fontsize=10)
        axis.set_xlabel("step")
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(lines) :]:
        axis.axis("off")
    figure.tight_layout()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    pyplot.close(figure)
    return write_whole(path, content.getvalue())
