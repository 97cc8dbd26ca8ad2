"""The most likely first states and parameters of a window of samples: Gauss-Newton through simulated trajectories.

    minimise over x_0, p, b   sum over t of |(y_t - b - x_t(x_0, p)) / sigma|^2 + |b / s|^2 + (p - p_0)' prior (p - p_0)

where b is a constant error of the sensors, if they may have one.
Long windows are cut into segments with a first state each, tied to the end of the segment before, so that no
trajectory runs long enough for an error to grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.backends.kernel_cache import load_kernels
from retorque.physics.backends.tree_dynamics import TreeDynamics
from retorque.physics.dynamics import Dynamics
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.input_noise import input_spread
from retorque.plan.modelling.window import Samples
from retorque.plan.passes import Step, make_passes
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

TIE = 0.05
"""How closely segments are tied, as a share of the noise."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Settings of the fit to a window."""

    iterations: int = 8
    """Most Gauss-Newton steps."""
    tolerance: float = 1e-3
    """A fit ends when a step is this small a share of each standard deviation."""
    segment: int = 40
    """Most samples that one trajectory runs through."""


@dataclass(frozen=True, slots=True)
class FittedWindow:
    """What a window says."""

    p: Array
    """(size,) most likely parameters."""
    covariance: Array
    """(size, size) of them, prior included."""
    information: Array
    """(size, size) what the window alone says of them, first states unknown."""
    state: Array
    """(2 n,) at the newest sample."""
    offset: Array
    """(2 n,) by which sensors seem to be off; zero where none is fitted."""
    joint: Array
    """(2 n + offsets + size, ...) covariance of that state, the sensors' offsets (2 n or none) and the parameters."""
    residuals: Array
    """(T+1, 2 n) measured less fitted, in standard deviations; zero where nothing was measured."""
    converged: bool

    @property
    def misfit(self) -> float:
        """Sum of squares of the residuals."""
        return float(np.sum(np.square(self.residuals)))


@dataclass(frozen=True, slots=True)
class Prediction:
    """How samples differ from what an older estimate says of them."""

    errors: Array
    """(count,) measured less predicted, in standard deviations of the noise."""
    covariance: Array
    """(count, count) of them as long as nothing has changed."""
    rows: Array
    """(count, 2 n + offsets + size) their derivatives by the anchor's state, the offsets and the parameters."""
    p: Array
    """(size,) the anchor's parameters."""
    joint: Array
    """(2 n + offsets + size, ...) covariance of these."""


class WindowFit:
    """Fits windows of one robot.

    Args:
        dynamics: with the free parameters' selection.
        free: what is unknown.
        noise: (2 n,) standard deviation of each number of a measured state.
        settings: iterations and segments.
        input_noise: standard deviation of what the inputs are beside what was sent [N or N·m], at each step anew. The
            fit does not follow it, but its covariance says what it does to the parameters.
        input_offset: the same of what stays as it is.
        offset: (2 n,) standard deviation of a constant error of each number of a measured state, fitted wherever
            parameters are and the first state is; default: none.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        free: FreeParameters,
        noise: Array,
        settings: FitSettings | None = None,
        *,
        input_noise: float = 0.0,
        input_offset: float = 0.0,
        offset: Array | None = None,
    ):
        if dynamics.passed:
            raise RetorqueError("windows are fitted for robots on a fixed base")
        noise = np.asarray(noise, dtype=float)
        if noise.shape != (2 * dynamics.nv,) or not np.all(noise > 0.0):
            raise RetorqueError(f"the noise must be {2 * dynamics.nv} standard deviations above zero")
        if not (0.0 <= input_noise < np.inf and 0.0 <= input_offset < np.inf):
            raise RetorqueError("the inputs' noise and offset must be standard deviations of 0 or more")
        offset = np.zeros_like(noise) if offset is None else np.asarray(offset, dtype=float)
        if offset.shape != noise.shape or not (np.all(offset > 0.0) or np.all(offset == 0.0)):
            raise RetorqueError(
                f"the sensors' offsets must be {len(noise)} standard deviations above zero, or all zero"
            )
        self.dynamics, self.free, self.noise, self.offset = dynamics, free, noise, offset
        self._input_variance = np.full(dynamics.inputs, float(input_noise) ** 2)
        self._input_constant = np.full(dynamics.inputs, float(input_offset) ** 2)
        self.settings = settings or FitSettings()
        self._passes = make_passes(dynamics, np.full(dynamics.inputs, 1e9))
        self._kernels = load_kernels("window_kernels") if isinstance(dynamics, TreeDynamics) else None

    def fit(
        self,
        samples: Samples,
        p: Array,
        prior: Array,
        *,
        centre: Array | None = None,
        first: Array | None = None,
        free: bool = True,
        known_first: bool = False,
        iterations: int | None = None,
    ) -> FittedWindow | None:
        """The fit from a guess on; None where no guess can be simulated.

        Args:
            samples: the window, two samples at least.
            p: (size,) first guess of the parameters, or their value where they are not free.
            prior: (size, size) information on the parameters beforehand.
            centre: (size,) where the prior has them; default: the guess.
            first: (2 n,) guess of the first state; default: as measured.
            free: whether the parameters are fitted; else only the states.
            known_first: take the first state as measured (as published), instead of fitting it.
            iterations: most; default: the settings'.
        """
        starts = self._starts(len(samples.states))
        states = samples.states[starts].copy()
        if first is not None:
            states[0] = first
        centre = p if centre is None else centre
        size = self.free.size if free else 0
        mobile = not known_first
        off = np.zeros(states.shape[1] if size and mobile and self.offset.any() else 0)
        best = self._evaluate(samples, starts, states, p, prior, centre, size, off)
        if best is None:
            states = samples.states[starts].copy()
            best = self._evaluate(samples, starts, states, p, prior, centre, size, off)
        if best is None:
            return None
        damping, converged = 1e-6, False
        for _ in range(self.settings.iterations if iterations is None else iterations):
            hessian, gradient, cost = best[0].copy(), best[1], best[2]
            if not mobile:
                hessian[size : size + states.shape[1], :] = 0.0
                hessian[:, size : size + states.shape[1]] = 0.0
                hessian[range(size, size + states.shape[1]), range(size, size + states.shape[1])] = 1.0
            change = _step(hessian, gradient, damping, size, p, self.free, mobile, states.shape[1])
            if change is None:
                break
            new_p = self.free.clip(p + change[:size]) if free else p
            new_states = states + change[size : size + states.size].reshape(states.shape)
            new_off = off + change[size + states.size :]
            tried = self._evaluate(samples, starts, new_states, new_p, prior, centre, size, new_off)
            if tried is None or tried[2] > cost + 1e-9:
                damping = max(1e-3, 10.0 * damping)
                if damping > 1e6:
                    break
                continue
            spread = np.sqrt(1.0 / np.maximum(np.diag(hessian), 1e-300))
            converged = bool(np.max(np.abs(change) / spread) < self.settings.tolerance) or cost - tried[2] < 1e-6 * cost
            p, states, off, best, damping = new_p, new_states, new_off, tried, 0.1 * damping
            if converged:
                break
        spread_by = None
        if size and mobile and (self._input_variance.any() or self._input_constant.any()):
            columns = 2 * self.dynamics.nv + self.dynamics.inputs + self.free.columns
            weights = 1.0 / np.square(self.noise)
            ties = weights / TIE**2
            spread_by = input_spread(
                *(best[6], columns, self.dynamics.timestep, weights, ties, samples.valid, starts, self._input_variance),
                constant=self._input_constant,
                offsets=len(off) > 0,
            )
        return self._result(best, p, off, size, converged, spread_by)

    def iteration(self, samples: Samples, p: Array, prior: Array) -> Array | None:
        """The change (size + 2 n segments,) of one Gauss-Newton iteration, as `fit` repeats it: for timing it."""
        starts = self._starts(len(samples.states))
        states = samples.states[starts]
        found = self._evaluate(samples, starts, states, p, prior, p, self.free.size, np.zeros(0))
        if found is None:
            return None
        return _step(found[0], found[1], 0.0, self.free.size, p, self.free, True, states.shape[1])

    def predicted(self, samples: Samples, anchor: FittedWindow, most: int = 0) -> Prediction | None:
        """Samples after an older estimate as it predicts them; None where it cannot be simulated or none was measured.

        Args:
            samples: from the anchor's own sample on, which is not counted.
            anchor: an estimate that has not seen the others.
            most: samples to look at, spread over all; 0: all.
        """
        d, width = self.dynamics, len(anchor.state)
        whole, steps = self.free.whole(anchor.p), len(samples.inputs)
        path = self._path(anchor.state, samples.inputs, whole)
        if path is None:
            return None
        a, b, by_p = d.linearise(path, samples.inputs, whole)
        keep = samples.valid[1:].copy()
        if most and steps > most:
            chosen = np.zeros(steps, dtype=bool)
            chosen[np.linspace(0, steps - 1, most).round().astype(int)] = True
            keep &= chosen
        if not keep.any():
            return None
        offsets = len(anchor.joint) - width - self.free.size
        known = width + offsets + self.free.size  # then a column for each input of each step, where inputs are noisy
        noisy = d.inputs if self._input_variance.any() else 0
        by_p, pushes = by_p[:, :, self.free.columns], b * np.sqrt(self._input_variance)
        now = np.eye(width, known + steps * noisy)
        kept = []
        for t in range(steps):
            now = a[t] @ now
            now[:, width + offsets : known] += by_p[t]
            if noisy:
                now[:, known + t * noisy : known + (t + 1) * noisy] = pushes[t]
            if keep[t]:
                kept.append(now)
        errors = ((samples.states[1:] - anchor.offset - path[1:]) / self.noise)[keep].ravel()
        changes = np.array(kept)
        changes[:, range(offsets), range(width, width + offsets)] = 1.0
        every = (changes / self.noise[:, None]).reshape(len(errors), -1)
        rows, pushed = every[:, :known], every[:, known:]
        covariance = np.eye(len(errors)) + rows @ anchor.joint @ rows.T + pushed @ pushed.T
        return Prediction(errors, covariance, rows, anchor.p, anchor.joint)

    def _starts(self, count: int) -> list[int]:
        segments = max(1, -(-(count - 1) // self.settings.segment))
        return [round(k * (count - 1) / segments) for k in range(segments)]

    def _evaluate(
        self,
        samples: Samples,
        starts: list[int],
        states: Array,
        p: Array,
        prior: Array,
        centre: Array,
        size: int,
        off: Array,
    ) -> tuple[Array, Array, float, Array, Array, Array, Array] | None:
        """Normal equations, cost, residuals, newest state, its sensitivity, and derivatives of accelerations.

        Unknowns are (p, first states, offsets of the sensors).
        """
        width = states.shape[1]
        whole = self.free.whole(p)
        ends = [*starts[1:], len(samples.states) - 1]
        path = []
        for k, (begin, end) in enumerate(zip(starts, ends, strict=True)):
            part = self._path(states[k], samples.inputs[begin:end], whole)
            if part is None:
                return None
            path.append(part)
        trajectory = np.concatenate([part[:-1] for part in path] + [path[-1][-1:]])
        changes = self._derivatives(trajectory, samples.inputs, whole)
        first_off = size + states.size
        unknowns = first_off + len(off)
        ties: list[tuple[Array, Array]] = []
        hessian, gradient, cost = np.zeros((unknowns, unknowns)), np.zeros(unknowns), 0.0
        residuals = ((samples.states - off if len(off) else samples.states) - trajectory) / self.noise
        residuals[~samples.valid] = 0.0
        now = np.zeros((width, size + width))
        for k, (begin, end) in enumerate(zip(starts, ends, strict=True)):
            now = np.zeros((width, size + width))
            now[:, size:] = np.eye(width)
            last = end + 1 if k == len(starts) - 1 else end
            part, slope = np.zeros((size + width, size + width)), np.zeros(size + width)
            cross = np.zeros((width, size + width))
            self._segment(changes, size, residuals, samples.valid, begin, last, now, part, slope, cross)
            where = np.concatenate([np.arange(size), size + k * width + np.arange(width)])
            hessian[np.ix_(where, where)] += part
            gradient[where] += slope
            if len(off):
                hessian[first_off:, where] += cross
                hessian[where, first_off:] += cross.T
            if k + 1 < len(starts):
                ties.append((now, (states[k + 1] - path[k][-1]) / (TIE * self.noise)))
        for k, (end_change, gap) in enumerate(ties):
            rows = np.zeros((width, unknowns))
            rows[:, :size] = end_change[:, :size]
            rows[:, size + k * width : size + (k + 1) * width] = end_change[:, size:]
            rows[:, size + (k + 1) * width : size + (k + 2) * width] = -np.eye(width)
            rows /= (TIE * self.noise)[:, None]
            hessian += rows.T @ rows
            gradient += rows.T @ gap
            cost += float(gap @ gap)
        cost += float(np.sum(np.square(residuals)))
        if size:
            hessian[:size, :size] += prior
            gradient[:size] -= prior @ (p - centre)
            cost += float((p - centre) @ prior @ (p - centre))
        if len(off):
            mine = np.arange(first_off, unknowns)
            hessian[mine, mine] += np.sum(samples.valid) / np.square(self.noise) + 1.0 / np.square(self.offset)
            gradient[mine] += np.sum(residuals, axis=0) / self.noise - off / np.square(self.offset)
            cost += float(np.sum(np.square(off / self.offset)))
        if not np.isfinite(cost):
            return None
        newest = np.zeros((width, unknowns))
        newest[:, :size], newest[:, first_off - width : first_off] = now[:, :size], now[:, size:]
        return hessian, gradient, cost, residuals, trajectory[-1], newest, changes

    def _path(self, x: Array, inputs: Array, whole: Array) -> Array | None:
        """States (steps+1, 2 n) from a first one on; None where they diverge."""
        inputs = np.ascontiguousarray(inputs)
        nothing = Step(np.zeros_like(inputs), np.zeros((*inputs.shape, len(x))), (0.0, 0.0))
        still = np.zeros((len(inputs) + 1, len(x)))
        found = self._passes.forward(np.ascontiguousarray(x), still, inputs, nothing, 0.0, whole)
        return None if found is None else found[0]

    def _derivatives(self, trajectory: Array, inputs: Array, whole: Array) -> Array:
        """Derivatives of accelerations along a trajectory, (T, n, 2 n + inputs + selection)."""
        n = self.dynamics.nv
        q, v = trajectory[:-1, :n].copy(), trajectory[:-1, n:].copy()
        return self.dynamics.derivatives(q, v, np.ascontiguousarray(inputs), whole)[1]

    def _segment(
        self,
        g: Array,
        size: int,
        residuals: Array,
        valid: Array,
        begin: int,
        end: int,
        now: Array,
        h: Array,
        b: Array,
        cross: Array,
    ) -> None:
        """See `window_kernels.segment`; in NumPy where nothing is compiled."""
        d = self.dynamics
        columns = (2 * d.nv + d.inputs + self.free.columns)[:size]
        if self._kernels is not None:
            flags = valid.astype(np.int64)
            self._kernels.segment(g, columns, d.timestep, residuals, self.noise, flags, begin, end, now, h, b, cross)
            return
        n = d.nv
        for t in range(begin, end):
            if valid[t]:
                rows = now / self.noise[:, None]
                h += rows.T @ rows
                cross += rows / self.noise[:, None]
                b += rows.T @ residuals[t]
            if t == len(g):
                break
            after = now[n:] + d.timestep * g[t, :, : 2 * n] @ now
            after[:, :size] += d.timestep * g[t][:, columns]
            now[n:] = after
            now[:n] += d.timestep * after

    def _result(
        self,
        best: tuple[Array, Array, float, Array, Array, Array, Array],
        p: Array,
        off: Array,
        size: int,
        converged: bool,
        spread: Array | None,
    ) -> FittedWindow:
        hessian, _, _, residuals, state, newest, _ = best
        scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        covariance = scale[:, None] * np.linalg.pinv(hessian * scale * scale[:, None], rcond=1e-12) * scale
        if spread is not None:
            covariance = covariance + covariance @ spread @ covariance
        width, offsets = len(state), len(off)
        rows = np.zeros((width + offsets + self.free.size, len(hessian)))
        rows[:width] = newest
        rows[width : width + offsets, len(hessian) - offsets :] = np.eye(offsets)
        rows[width + offsets : width + offsets + size, :size] = np.eye(size)
        joint = rows @ covariance @ rows.T
        states = hessian[size:, size:]
        cross = hessian[:size, size:]
        information = hessian[:size, :size] - cross @ np.linalg.pinv(states, rcond=1e-12) @ cross.T
        off = off if offsets else np.zeros(width)
        return FittedWindow(p, covariance[:size, :size], information, state, off, joint, residuals, converged)


def _step(
    hessian: Array, gradient: Array, damping: float, size: int, p: Array, free: FreeParameters, mobile: bool, width: int
) -> Array | None:
    """A damped Newton step whose parameters stay inside their bounds: those that would leave are held."""
    diagonal = np.diag(hessian)
    damped = hessian + damping * np.diag(np.maximum(diagonal, 1e-12))
    gradient = gradient.copy()
    if not mobile:
        gradient[size : size + width] = 0.0
    held = np.zeros(len(gradient), dtype=bool)
    for _ in range(size + 1):
        keep = ~held
        scale = 1.0 / np.sqrt(np.maximum(np.diag(damped)[keep], 1e-300))
        try:
            scaled = damped[np.ix_(keep, keep)] * scale * scale[:, None]
            part = scale * np.linalg.solve(scaled, scale * gradient[keep])
        except np.linalg.LinAlgError:
            return None
        change = np.zeros(len(gradient))
        change[keep] = part
        moved = p + change[:size] if size else p
        out = (
            ((moved < free.lower) & (p <= free.lower)) | ((moved > free.upper) & (p >= free.upper))
            if size
            else held[:0]
        )
        if not np.any(out & ~held[:size]):
            return change if np.all(np.isfinite(change)) else None
        held[:size] |= out
    return change
