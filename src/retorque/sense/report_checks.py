"""Which motor reports can be believed: missing, frozen or saturated ones are found before they do harm."""

from __future__ import annotations

import numpy as np

from retorque.control.comply_code import ComplyCode
from retorque.physics.motor_torque import SIGNALS, MotorTorque
from retorque.robots.state import State
from retorque.work.array import Array

FROZEN_AFTER = 0.3
"""A report that stays the same for so long while its joint moves has stopped [s]."""
MOVED = 0.02
"""How far the joint must have moved meanwhile [rad]."""
FULL = 0.98
"""Duty cycle at which a motor is at its end."""
LOW = 0.85
"""Share of the nominal bus voltage below which it sags."""


class ReportChecks:
    """Looks at the reports of a batch, tick by tick.

    Args:
        motor: which signal each joint is read from.
        trials: robots served at once.
        timestep: control period [s].
        used: (n,) joints that matter.
    """

    def __init__(self, motor: MotorTorque, trials: int, timestep: float, used: Array):
        self._motor, self._used = motor, used
        self._shape = (trials, len(used))
        self._patience = max(2, round(FROZEN_AFTER / timestep))
        self._pwm_read = motor.source == SIGNALS.index("pwm")
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._last = np.full(self._shape, np.nan)
        self._same = np.zeros(self._shape, dtype=np.int64)
        self._where = np.full(self._shape, np.nan)

    def check(self, state: State) -> tuple[Array, Array]:
        """Joints to leave out (trials, n), and codes (trials,)."""
        report, trials = state.motor, self._shape[0]
        codes = np.zeros(trials, dtype=np.int64)
        if report is None:
            return np.zeros(self._shape, dtype=bool), codes
        source = report.pwm if report.current is None else report.current
        if self._pwm_read.any() and report.pwm is not None and report.current is not None:
            source = np.where(self._pwm_read, report.pwm, report.current)
        value = np.full(self._shape, np.nan) if source is None else np.reshape(source, self._shape)
        position = np.reshape(state.position, self._shape)
        read = self._motor.source != SIGNALS.index("torque")
        missing = ~np.isfinite(value) & self._used & read
        same = value == self._last
        if same.any():
            self._same = np.where(same, self._same + 1, 0)
            self._where = np.where(same & np.isfinite(self._where), self._where, position)
            frozen = (self._same >= self._patience) & (np.abs(position - self._where) > MOVED) & self._used & read
        else:
            self._same[:] = 0
            self._where[:] = position
            frozen = same
        self._last = value
        if missing.any():
            codes |= np.where(missing.any(axis=-1), int(ComplyCode.MISSING), 0)
        if frozen.any():
            codes |= np.where(frozen.any(axis=-1), int(ComplyCode.FROZEN), 0)
        if report.pwm is not None:
            full = np.reshape(np.abs(report.pwm) >= FULL, self._shape) & self._used
            if full.any():
                codes |= np.where(full.any(axis=-1), int(ComplyCode.SATURATED), 0)
        if report.voltage is not None:
            low = np.reshape(report.voltage < LOW * self._motor.joints.bus_voltage, self._shape)
            if low.any():
                codes |= np.where(low.any(axis=-1), int(ComplyCode.SAG), 0)
        return missing | frozen, codes
