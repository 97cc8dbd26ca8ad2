"""The supervisor and its adapter together in the compiled core: one call observes, one corrects."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor
from retorque.robots.state import State
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.supervisor_constants import supervisor_constants
from retorque.work.array import Array


class CompiledScore:
    """What `Score` says, read out of the cores."""

    def __init__(self, squares: list[Array], samples: list[Array], rate: float, shape: tuple[int, ...]):
        self._squares, self._samples, self._rate, self._shape = squares, samples, rate, shape

    @property
    def samples(self) -> Array:
        """(...) windows that counted."""
        return np.array([int(count[0]) for count in self._samples]).reshape(self._shape[:-1])

    @property
    def without(self) -> Array:
        """RMS of the missing torque, (..., n) [N·m]."""
        return self._rms(0)

    @property
    def corrected(self) -> Array:
        """RMS of the missing torque that the correction does not explain, (..., n) [N·m]."""
        return self._rms(1)

    def _rms(self, which: int) -> Array:
        samples = self.samples[..., None]
        fill = np.where(samples > 0, 1.0 - (1.0 - self._rate) ** samples, 1.0)
        return np.sqrt(np.stack([each[which] for each in self._squares]).reshape(self._shape) / fill)


class CompiledSupervisor(CompiledAdapter):
    """Stands in for a `Supervisor` whose adapter has a core; nothing here raises while the robot runs.

    Args:
        supervisor: what it stands in for; its settings are taken over, not what its adapter has learnt.
        library: the compiled core; default: built where it is not there yet.
    """

    def __init__(self, supervisor: Supervisor, library: Path | None = None):
        super().__init__(supervisor.adapter, library, supervisor=supervisor_constants(supervisor))
        self.settings = supervisor.settings
        self.adapter: Adapter = supervisor.adapter
        """The NumPy adapter whose constants it has."""
        self.residual_limit, self.max_contact_force = supervisor.residual_limit, supervisor.max_contact_force
        n, lead, log = self.robot.n, self._shape[:-1], self.settings.log_ticks
        self.score = CompiledScore(
            [views.reshape(2, n) for views in self._views("rt_score", ctypes.c_double, 2 * n)],
            self._views("rt_score_samples", ctypes.c_int64, 1),
            supervisor.score._rate,
            self._shape,
        )
        self._corrections = self._views("rt_correction", ctypes.c_double, n)
        self._gains = self._views("rt_gain", ctypes.c_double, n)
        self._counts = self._views("rt_counts", ctypes.c_int64, len(Health))
        self._log, self._log_time = np.zeros((log, *self._shape)), np.zeros(log)
        self._logs = log > 0
        self._log_codes, self._ticks = np.zeros((log, *lead), dtype=np.int64), 0

    @property
    def correction(self) -> Array:
        """(..., n) the last correction that was asked for, after limits [N·m]."""
        return np.stack(self._corrections).reshape(self._shape)

    @property
    def gain(self) -> Array:
        """(..., n) how much of each joint's correction goes out."""
        return np.stack(self._gains).reshape(self._shape)

    @property
    def counts(self) -> dict[Health, int]:
        """How often each code occurred."""
        total = np.sum(self._counts, axis=0)
        return {flag: int(total[int(flag).bit_length() - 1]) for flag in Health if flag}

    def observe(self, state: State) -> None:
        self.fill(state)
        self._observe(self._at)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        self.fill_nominal(nominal_torque)
        self._correct(self._at)
        if self._logs:
            row = self._ticks % len(self._log)
            self._log_time[row] = self._time[0]
            self._log[row], self._log_codes[row] = self.correction, self.health
            self._ticks += 1
        return self._sent.copy()

    def fill(self, state: State) -> None:
        """Hand a report to the core; what has another shape, or is no numbers at all, is no data."""
        try:
            self._time[0] = state.time
            self._position[...] = state.position
            self._velocity[...] = state.velocity
            self._torque[...] = state.torque
        except (ValueError, TypeError):
            self._report[:] = np.nan

    def fill_nominal(self, nominal_torque: Array) -> None:
        """Hand a nominal torque to the core, the same way."""
        try:
            self._nominal[...] = nominal_torque
        except (ValueError, TypeError):
            self._nominal[...] = np.nan

    def call_observe(self) -> None:
        """`observe` what was handed over."""
        self._observe(self._at)

    def call_correct(self) -> None:
        """`correct` what was handed over; the torque stands in `sent`."""
        self._correct(self._at)

    def repeat_column(self) -> None:
        """Make TAM's last column of tokens once more, of the first robot: to time it."""
        self._calls.rt_repeat_column(ctypes.c_void_p(int(self._cores[0])))

    @property
    def sent(self) -> Array:
        """(..., n) the last torque [N·m]; the next tick writes over it."""
        return self._sent

    def log(self) -> tuple[Array, Array, Array]:
        """Time (ticks,), correction (ticks, ..., n) [N·m] and codes (ticks, ...) of the last ticks, in order."""
        kept = min(self._ticks, len(self._log))
        order = (self._ticks - kept + np.arange(kept)) % max(1, len(self._log))
        return self._log_time[order], self._log[order], self._log_codes[order]

    def _views(self, call: str, kind: type[ctypes.c_double] | type[ctypes.c_int64], count: int) -> list[Array]:
        """Numbers of each core in place."""
        function = getattr(self._calls, call)
        function.restype = ctypes.c_void_p
        at = [function(ctypes.c_void_p(int(core))) for core in self._cores]
        return [np.ctypeslib.as_array((kind * count).from_address(address)) for address in at]
