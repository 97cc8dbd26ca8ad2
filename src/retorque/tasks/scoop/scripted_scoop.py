"""A scripted operator: where a person would lead the spoon who sees the ball but not how high the table is."""

from __future__ import annotations

import numpy as np

from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import State
from retorque.tasks.scoop.pose_source import PERIOD
from retorque.tasks.scoop.scoop_task import BOWL, DOWN, START, STOP, TABLE
from retorque.work.array import Array

UP = -0.25
"""Pitch of the spoon, nose up, while it carries [rad]."""
POUR = 0.4
"""Pitch in which the ball rolls out [rad]."""
BELOW = 0.02
"""How far below the table, as it is thought to be, the operator leads the spoon to be sure of it [m]."""
HASTE = 0.15
"""Operators differ in speed by up to this share."""


class ScriptedScoop:
    """Above the table, down, along it to the stopper, nose up, over to the bowl, nose down.

    Args:
        ball: (trials, 2) where the operator saw it [m].
        seed: of the operators' speeds and habits.
    """

    def __init__(self, ball: Array, seed: int):
        trials = len(ball)
        rng = np.random.default_rng([seed, 42])
        self._haste = 1.0 + HASTE * rng.uniform(-1.0, 1.0, (trials, 1))
        own = 0.004 * rng.uniform(-1.0, 1.0, (trials, 3))  # nobody hits a waypoint twice
        y = ball[:, 1]
        low, high = np.full(trials, TABLE - BELOW), np.full(trials, TABLE + 0.07)
        behind, end = ball[:, 0] - 0.045, np.full(trials, STOP - 0.004)
        zero = np.zeros(trials)
        rows = [  # seconds, x, y, z, pitch
            (0.0, zero + START[0], zero + START[1], zero + START[2], DOWN),
            (1.2, behind + own[:, 0], y, high, DOWN),
            (1.6, behind + own[:, 0], y, low, DOWN),
            (2.6, end, y, low, DOWN),
            (0.5, end, y, low, DOWN),
            (1.2, end, y, low + 0.5 * BELOW, 0.0),
            (1.2, end, y, zero + TABLE + 0.035, UP),
            (1.2, end - 0.03, y, high + 0.02, UP),
            (1.8, zero + BOWL[0] - 0.02 + own[:, 1], zero + BOWL[1] + own[:, 2], high + 0.02, UP),
            (1.6, zero + BOWL[0] - 0.02 + own[:, 1], zero + BOWL[1] + own[:, 2], zero + TABLE + 0.055, POUR),
        ]
        self._times = np.cumsum([row[0] for row in rows]) * self._haste
        self._points = np.stack([np.stack([*row[1:4], zero + row[4]], axis=-1) for row in rows], axis=1)

    def reset(self, state: State) -> None:
        self._began = state.time

    def pose(self, state: State) -> tuple[Array, Array]:
        time = state.time - self._began + PERIOD
        found = np.empty((len(self._points), 4))
        for trial, (times, points) in enumerate(zip(self._times, self._points, strict=True)):
            leg = int(np.clip(np.searchsorted(times, time) - 1, 0, len(times) - 2))
            share = np.clip((time - times[leg]) / (times[leg + 1] - times[leg]), 0.0, 1.0)
            smooth = share * share * (3.0 - 2.0 * share)
            found[trial] = points[leg] + smooth * (points[leg + 1] - points[leg])
        turns = np.stack([from_axis_angle((0.0, 1.0, 0.0), float(pitch)) for pitch in found[:, 3]])
        return found[:, :3], turns
