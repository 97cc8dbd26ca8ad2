"""Which motor reports can be believed: missing, frozen or saturated ones are found before they do harm."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.comply_code import ComplyCode
from retorque.physics.kernels.compiled import kernel
from retorque.physics.motor_torque import MotorTorque
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
MISSING, STOPPED = int(ComplyCode.MISSING), int(ComplyCode.FROZEN)
FULL_VOLTAGE, SAGGING = int(ComplyCode.SATURATED), int(ComplyCode.SAG)


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
        self._nan = np.full(self._shape, np.nan)
        self._left_out, self._codes = np.zeros(self._shape, dtype=bool), np.zeros(trials, dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.found = False
        self._last = np.full(self._shape, np.nan)
        self._same = np.zeros(self._shape, dtype=np.int64)
        self._where = np.full(self._shape, np.nan)

    def check(self, state: State) -> tuple[Array, Array]:
        """Joints to leave out (trials, n), and codes (trials,); both are written over at the next call.

        `found` says whether there is any code.
        """
        report, shape = state.motor, self._shape
        if report is None:
            self._left_out[:], self._codes[:], self.found = False, 0, False
            return self._left_out, self._codes
        current = self._nan if report.current is None else report.current
        pwm = self._nan if report.pwm is None else report.pwm
        voltage = self._nan if report.voltage is None else report.voltage
        position = state.position
        if position.shape != shape:
            position, current, pwm, voltage = (x.reshape(shape) for x in (position, current, pwm, voltage))
        self.found = _check(
            self._motor.source,
            self._used,
            self._motor.joints.bus_voltage,
            self._patience,
            position,
            current,
            pwm,
            voltage,
            self._last,
            self._same,
            self._where,
            self._left_out,
            self._codes,
        )
        return self._left_out, self._codes


@kernel
def _check(
    source: Array,
    used: Array,
    bus: Array,
    patience: int,
    position: Array,
    current: Array,
    pwm: Array,
    voltage: Array,
    last: Array,
    same: Array,
    where: Array,
    left_out: Array,
    codes: Array,
) -> bool:
    """Fill joints to leave out and codes, and say whether there are any; see `ReportChecks`."""
    found = False
    for t in range(position.shape[0]):
        code = 0
        for j in range(position.shape[1]):
            left_out[t, j] = False
            if not used[j] or source[j] == 3:  # the drive's own torque
                continue
            value = current[t, j] if source[j] == 1 else pwm[t, j]
            if value == last[t, j]:
                same[t, j] += 1
            else:
                same[t, j] = 0
                where[t, j] = position[t, j]
            last[t, j] = value
            if not np.isfinite(value):
                left_out[t, j] = True
                code |= MISSING
            elif same[t, j] >= patience and abs(position[t, j] - where[t, j]) > MOVED:
                left_out[t, j] = True
                code |= STOPPED
            if abs(pwm[t, j]) >= FULL:
                code |= FULL_VOLTAGE
            if voltage[t, j] < LOW * bus[j]:
                code |= SAGGING
        codes[t] = code
        found = found or code != 0
    return found
