"""Fig. 2 and Fig. 3 of the hybrid inverse-dynamics paper, from the rows of their benches."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from retorque.bench.report import Row
from retorque.work.files import write_whole

SHOWN = ("RBD+Sign+LSTM E2E", "RBD+Sign E2E", "LSTM E2E")
"""The models of Fig. 3."""


def draw_joints(rows: list[Row], joints: Sequence[str], path: Path) -> Path:
    """Each joint's test error as bars, with the spread of the trainings."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axis = figure.subplots()
    shown = [row for row in rows if row.metric == "test NMSE" and row.method.removesuffix(" (ours)") in SHOWN]
    width = 0.8 / max(len(shown), 1)
    for k, row in enumerate(shown):
        values = np.array(row.extra["joints"])
        place = np.arange(len(joints)) + (k - 0.5 * (len(shown) - 1)) * width
        axis.bar(place, values.mean(axis=0), width, yerr=values.std(axis=0), capsize=2, label=row.method)
    axis.set_xticks(np.arange(len(joints)), joints)
    axis.set_yscale("log")
    axis.set_ylabel("test NMSE")
    axis.set_title(f"{shown[0].trials} trainings, bars their standard deviation" if shown else "")
    axis.legend(fontsize=8)
    axis.grid(axis="y", alpha=0.25)
    return _save(figure, path)


def draw_curves(rows: list[Row], path: Path) -> Path:
    """Validation loss over the epochs: mean, and 5th to 95th percentile, one field a rigid body."""
    bodies = list(dict.fromkeys(row.method.split()[0] for row in rows))
    figure = Figure(figsize=(4 * len(bodies), 3.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(bodies), sharey=True))
    for axis, body in zip(axes, bodies, strict=True):
        for row in rows:
            name, _, way = row.method.partition(" ")
            if name != body:
                continue
            curves = np.array(row.extra["curves"])
            epoch = 1 + np.arange(curves.shape[1])
            (line,) = axis.plot(epoch, curves.mean(axis=0), label=way)
            low, high = np.percentile(curves, (5.0, 95.0), axis=0)
            axis.fill_between(epoch, low, high, color=line.get_color(), alpha=0.2)
        axis.set_title(body)
        axis.set_xlabel("epoch")
        axis.set_yscale("log")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("validation NMSE")
    axes[0].legend(fontsize=8)
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    return write_whole(path, content.getvalue())
