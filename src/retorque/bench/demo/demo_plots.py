"""The demo's plot: two joints followed, and every adapter's error over time."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from retorque.work.array import Array

matplotlib.use("Agg")

import matplotlib.pyplot as plt


class Recorded(NamedTuple):
    """One adapter's run, or the ideal robot's."""

    position: Array
    """(ticks, trials, n) [rad]"""
    time: Array
    """(ticks,) [s]"""


PALETTE = {
    False: {
        "ink": "#1b2330",
        "soft": "#6b7688",
        "grid": "#dfe4ec",
        "ideal": "#9aa5b5",
        "bad": "#e0562b",
        "good": "#0f7f93",
    },
    True: {
        "ink": "#e8ecf2",
        "soft": "#9aa6b8",
        "grid": "#2c3646",
        "ideal": "#7d8aa0",
        "bad": "#ff7d52",
        "good": "#3cc3d8",
    },
}
"""Colours on light and on dark ground."""
OTHERS = ("#8a63d2", "#c9922e", "#4f8f46", "#b0517f")
"""Further adapters."""


def plot(
    ideal: Recorded, results: dict[str, Recorded], errors: dict[str, Array], shown: str, trial: int, *, dark: bool
) -> bytes:
    """The figure as PNG with a transparent ground."""
    ink = PALETTE[dark]
    style: dict[Any, Any] = {
        "font.size": 10,
        "text.color": ink["ink"],
        "axes.labelcolor": ink["soft"],
        "axes.edgecolor": ink["grid"],
        "xtick.color": ink["soft"],
        "ytick.color": ink["soft"],
        "grid.color": ink["grid"],
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(style):
        figure = plt.figure(figsize=(11.0, 4.9), dpi=110)
        grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1.0), hspace=0.42, wspace=0.2)
        size = np.sqrt(np.mean(errors["direct"][:, trial] ** 2, axis=0))
        joints = sorted(np.argsort(size)[::-1][:2].tolist())
        for row, joint in enumerate(joints):
            axes = figure.add_subplot(grid[row, 0])
            _joint(axes, ideal, results["direct"], results[shown], shown, trial, joint, ink)
            if row == 0:
                axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(-0.02, 1.1), fontsize=9)
        axes.set_xlabel("time [s]")
        _errors(figure.add_subplot(grid[:, 1]), ideal.time, errors, shown, ink)
        figure.subplots_adjust(left=0.06, right=0.985, top=0.87, bottom=0.11)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", transparent=True)
        plt.close(figure)
    return buffer.getvalue()


def _joint(
    axes: plt.Axes,
    ideal: Recorded,
    plain: Recorded,
    helped: Recorded,
    name: str,
    trial: int,
    joint: int,
    ink: dict[str, str],
) -> None:
    """One joint's angle."""

    def angle(motion: Recorded) -> Array:
        return np.rad2deg(motion.position[:, trial, joint])

    axes.grid(True, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.plot(ideal.time, angle(ideal), color=ink["ideal"], linewidth=5.0, alpha=0.6, label="ideal robot")
    axes.plot(plain.time, angle(plain), color=ink["bad"], linewidth=1.5, label="uncorrected")
    axes.plot(helped.time, angle(helped), color=ink["good"], linewidth=1.7, label=f"corrected ({name})")
    axes.set_title(f"joint {joint + 1} [deg]", loc="left", fontsize=10, color=ink["ink"])
    axes.set_xlim(0.0, ideal.time[-1])


def _errors(axes: plt.Axes, clock: Array, errors: dict[str, Array], shown: str, ink: dict[str, str]) -> None:
    """RMS over joints and trials in windows of 0.2 s, on a logarithmic scale."""
    axes.grid(True, which="major", linewidth=0.7)
    axes.set_axisbelow(True)
    window = max(1, round(0.2 / (clock[1] - clock[0])))
    others = iter(OTHERS)
    labels: list[tuple[float, str, str]] = []
    for name, error in errors.items():
        square = np.mean(error**2, axis=(1, 2))
        count = len(square) // window
        value = np.sqrt(square[: count * window].reshape(count, window).mean(axis=1))
        at = clock[: count * window].reshape(count, window).mean(axis=1)
        known = {"direct": ink["bad"], shown: ink["good"], "oracle": ink["ideal"]}
        colour = known.get(name) or next(others, ink["soft"])
        axes.semilogy(at, value, color=colour, linewidth=2.2 if name == shown else 1.5)
        labels.append((float(value[-1]), name, colour))
    low, high = axes.get_ylim()
    apart = (high / low) ** 0.055  # least distance of two labels, as a factor
    height = 0.0
    for value, name, colour in sorted(labels):
        height = max(value, height * apart)
        axes.text(clock[-1] * 1.02, height, name, color=colour, va="center", fontsize=9)
    axes.set_xlim(0.0, clock[-1] * 1.36)
    axes.set_xticks(np.linspace(0.0, clock[-1], 5).round(1))
    axes.set_title("distance from the ideal motion, all trials [deg]", loc="left", fontsize=10, color=ink["ink"])
    axes.set_xlabel("time [s]")
    axes.minorticks_off()
