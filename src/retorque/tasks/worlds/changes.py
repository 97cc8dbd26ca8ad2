"""What changes about a target while it runs: payloads, drives and friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import unknown

CHANGES = ("cycles", "pick-up", "gain-step", "gain-step-joint", "gain-drift", "thermal")
CYCLE = 4.0
"""Time for which a payload is carried, and between two [s]."""
LOADS = {"cycles": 2.0, "pick-up": 1.0}
"""Mass for an arm that is told payloads of up to 1.5 kg; others in proportion [kg]."""
USUAL_LOAD = 1.5
"""[kg]"""
LOSS = 0.15
"""Share of the gain that a drive loses."""
DRIFT, DRIFT_PERIOD = 0.1, 20.0
"""Largest change of a drifting gain, and its period [s]."""
COLD, WARM, WARMING = 1.5, 0.5, 6.0
"""Friction at the start and in the end, as multiples of the drawn one, and the time constant between [s]."""
SLOWLY = 0.1
"""Time between two values of what drifts [s]."""


class Changes:
    """The target's parameters over time.

    Args:
        robot: the ideal robot.
        kind: one of `CHANGES`, or empty: nothing changes.
        start: parameters at first (trials, ...).
        duration: of the whole run [s].
        seed: of what is random: which joint, which way.
    """

    def __init__(self, robot: Robot, kind: str, start: Parameters, duration: float, seed: int):
        if kind and kind not in CHANGES:
            raise unknown("change", kind, CHANGES)
        self.kind, self._start, self._half = kind, start, 0.5 * duration
        rng = np.random.default_rng(seed)
        trials = start.trials[0]
        self._joint = rng.integers(0, robot.n, trials)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (trials, robot.n))
        self._load = LOADS.get(kind, 0.0) * profile_of(robot).payload_mass[1] / USUAL_LOAD
        self._n = robot.n

    def first(self) -> Parameters:
        """The parameters that the target starts with."""
        return self._at(0.0) if self.kind in ("thermal", "gain-drift") else self._start

    def due(self, time: float, timestep: float) -> Parameters | None:
        """New parameters, at the ticks at which there are some."""
        if self.kind in ("gain-drift", "thermal"):
            return self._at(time) if time % SLOWLY < timestep - 1e-9 else None
        times = np.arange(CYCLE, 2.0 * self._half - 1e-9, CYCLE) if self.kind == "cycles" else np.array([self._half])
        return self._at(time) if self.kind and np.any(np.abs(times - time) < 0.5 * timestep) else None

    def _at(self, time: float) -> Parameters:
        p = self._start
        if self.kind == "cycles":
            carried = round(time / CYCLE) % 2 == 1
            return p.with_payload(p.payload_mass + (self._load if carried else 0.0))
        if self.kind == "pick-up":
            return p.with_payload(p.payload_mass + self._load)
        if self.kind == "thermal":
            share = WARM + (COLD - WARM) * np.exp(-time / WARMING)
            return replace(p, friction_amplitude=share * p.friction_amplitude, viscous=share * p.viscous)
        return replace(p, torque_scale=p.torque_scale * self._gain(time)[..., None])

    def _gain(self, time: float) -> Array:
        """(trials, n)"""
        if self.kind == "gain-drift":
            wave = np.sin(2.0 * np.pi * time / DRIFT_PERIOD + self._phase) - np.sin(self._phase)
            return 1.0 + 0.5 * DRIFT * wave
        weaker = np.ones((len(self._joint), self._n))
        if self.kind == "gain-step":
            return weaker - LOSS
        weaker[np.arange(len(self._joint)), self._joint] -= LOSS
        return weaker
