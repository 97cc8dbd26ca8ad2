"""Wrenches at sites from external joint torques: one Bayesian solve with prior deviations (equations 9, 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retorque.physics.kernels.compiled import cholesky_solve, kernel
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NOTHING = 1e-3
"""Standard deviation of an axis that is not estimated, as a share of the force's or moment's own."""


@dataclass(frozen=True, kw_only=True)
class WrenchPrior:
    """What is believed of a wrench before the torques are seen: zero, give or take."""

    force: tuple[float, float, float] | float = 5.0
    """Standard deviation an axis [N]."""
    moment: tuple[float, float, float] | float = 0.1
    """Standard deviation an axis [N·m]; 0: force only."""
    axes: tuple[tuple[float, float, float], ...] = ()
    """Unit directions in which force is looked for (equation 10); none: all."""

    def precision(self) -> Array:
        """Inverse covariance (6, 6)."""
        force = np.broadcast_to(np.asarray(self.force, dtype=float), 3)
        moment = np.broadcast_to(np.asarray(self.moment, dtype=float), 3)
        if not np.all(np.isfinite(force)) or np.any(force <= 0.0) or not np.all(moment >= 0.0):
            raise RetorqueError("a wrench's prior needs force deviations above 0 N and moments of 0 N·m or more")
        out = np.zeros((6, 6))
        if self.axes:
            chosen = np.atleast_2d(np.asarray(self.axes, dtype=float))
            chosen = chosen / np.linalg.norm(chosen, axis=1, keepdims=True)
            inside = np.linalg.pinv(chosen) @ chosen
            size = float(np.max(force))
            out[:3, :3] = inside / size**2 + (np.eye(3) - inside) / (NOTHING * size) ** 2
        else:
            out[:3, :3] = np.diag(1.0 / force**2)
        least = NOTHING * float(np.max(force)) * 0.01  # of a moment that is not estimated [N·m]
        out[3:, 3:] = np.diag(1.0 / np.maximum(moment, least) ** 2)
        return out


COHERENT = 2.6
"""Joints at rest hide the same push, all at once: each counts as independent joints would with their number over this
times its variance. An ellipsoid around the box of what n joints hide, bound by bound, needs n over 7.8 of the bounds'
squares for its 95 %; independent ones would have a third."""


@kernel
def _solve(
    jacobian: Array,
    torque: Array,
    variance: Array,
    lag: Array,
    hidden: Array,
    used: Array,
    groups: Array,
    precision: Array,
    loosest: Array,
    wrench: Array,
    covariance: Array,
    beyond: Array,
    doubt: Array,
    scratch: Array,
) -> None:
    """Fill wrenches, covariances, misfit, weakness and what rest hides beyond them; see `WrenchSolve`."""
    trials, n = torque.shape
    misfit, weakness, moved = doubt[0], doubt[1], np.empty(6)
    size = scratch.shape[0]
    a, b = scratch[:, :size], scratch[:, size:]
    for t in range(trials):
        for g in range(groups.shape[0]):
            count = 0
            while count < groups.shape[1] and groups[g, count] >= 0:
                count += 1
            m = 6 * count
            for r in range(m):
                for c in range(m):
                    a[r, c] = 0.0
                for c in range(m + 1):
                    b[r, c] = 0.0
                b[r, r + 1] = 1.0
            for k in range(count):
                s = groups[g, k]
                for r in range(6):
                    for c in range(6):
                        a[6 * k + r, 6 * k + c] = precision[s, r, c]
            for j in range(n):
                on = False
                for k in range(count):
                    on = on or used[groups[g, k], j]
                if not on:
                    continue
                w = 1.0 / variance[t, j]
                for k in range(count):
                    s = groups[g, k]
                    for r in range(6):
                        x = jacobian[t, s, r, j] * w
                        if x == 0.0:
                            continue
                        b[6 * k + r, 0] += x * torque[t, j]
                        for kk in range(count):
                            ss = groups[g, kk]
                            for c in range(6):
                                a[6 * k + r, 6 * kk + c] += x * jacobian[t, ss, c, j]
            if not cholesky_solve(a[:m, :m], b[:m, : m + 1]):
                for k in range(count):
                    s = groups[g, k]
                    weakness[t, s] = 1.0
                    for r in range(6):  # nothing is known but the prior
                        for c in range(6):
                            covariance[t, s, r, c] = 1.0 / loosest[s] if r == c else 0.0
                            beyond[t, s, r, c] = 0.0
                continue
            for k in range(count):
                s = groups[g, k]
                for r in range(6):
                    wrench[t, s, r] = b[6 * k + r, 0]
                    for c in range(6):
                        covariance[t, s, r, c] = b[6 * k + r, 1 + 6 * k + c]
            left, rows = 0.0, 0
            for j in range(n):
                on = False
                for k in range(count):
                    on = on or used[groups[g, k], j]
                if not on:
                    continue
                e = torque[t, j]
                for k in range(count):
                    s = groups[g, k]
                    for r in range(6):
                        e -= jacobian[t, s, r, j] * wrench[t, s, r]
                left += e * e / variance[t, j]
                rows += 1
            for k in range(count):
                s = groups[g, k]
                misfit[t, s] = left / max(rows, 1)
                # The largest variance that the torques leave, beside the prior's loosest axis: power iteration.
                x, y, z = 1.0, 0.7, -0.4
                value = 0.0
                for _ in range(12):
                    c = covariance[t, s]
                    u = c[0, 0] * x + c[0, 1] * y + c[0, 2] * z
                    v = c[1, 0] * x + c[1, 1] * y + c[1, 2] * z
                    w = c[2, 0] * x + c[2, 1] * y + c[2, 2] * z
                    x, y, z = loosest[s] * u, loosest[s] * v, loosest[s] * w
                    value = (x * x + y * y + z * z) ** 0.5
                    if value > 0.0:
                        x, y, z = x / value, y / value, z / value
                weakness[t, s] = value
                # Σ_j v_j g_j g_jᵀ, where g_j = C J_j / σ_j² is what a joint's torque moves the wrench by.
                joints = 0
                for j in range(n):
                    joints += used[s, j]
                more = max(0.0, joints / COHERENT - 1.0)
                for r in range(6):
                    for c in range(6):
                        beyond[t, s, r, c] = 0.0
                for j in range(n):
                    if not used[s, j] or (lag[t, j] == 0.0 and hidden[t, j] == 0.0):
                        continue
                    for r in range(6):
                        moved[r] = 0.0
                        for i in range(6):
                            moved[r] += b[6 * k + r, 1 + 6 * k + i] * jacobian[t, s, i, j] / variance[t, j]
                    for r in range(6):
                        for i in range(6):
                            covariance[t, s, r, i] += lag[t, j] * moved[r] * moved[i]
                            beyond[t, s, r, i] += more * hidden[t, j] * moved[r] * moved[i]


class WrenchSolve:
    """The wrench at each site that explains the torques of its own chain best, given the prior.

    f = (Λ + Σ_j J_j J_jᵀ / σ_j²)⁻¹ Σ_j J_j τ_j / σ_j², in world axes at the site. Sites whose chains share joints are
    solved together.

    Args:
        used: (sites, n) joints of each site's chain.
        priors: one for all sites, or one each.
        trials: robots served at once.
    """

    def __init__(self, used: Array, priors: WrenchPrior | Sequence[WrenchPrior] = WrenchPrior(), trials: int = 1):  # noqa: B008
        sites = len(used)
        self.used = np.asarray(used, dtype=bool)
        each = [priors] * sites if isinstance(priors, WrenchPrior) else list(priors)
        if len(each) != sites:
            raise RetorqueError(f"there are {sites} sites and {len(each)} priors; give one for all or one each")
        self.precision = np.array([prior.precision() for prior in each])
        self._loosest = np.linalg.eigvalsh(self.precision[:, :3, :3])[:, 0]
        self._groups = _groups(self.used)
        self.wrench = np.zeros((trials, sites, 6))
        """(trials, sites, 6) force [N], then moment [N·m]."""
        self.covariance = np.zeros((trials, sites, 6, 6))
        self.doubt = np.zeros((2, trials, sites))
        """(2, trials, sites) mean squared residual over its variance, about 1 or less where the model holds; and the
        largest force variance that is left, as a share of the prior's largest, 1: nothing felt."""
        self.beyond = np.zeros((trials, sites, 6, 6))
        """(trials, sites, 6, 6) what joints at rest may hide together, beyond the covariance."""
        self._none = np.zeros((trials, self.used.shape[1]))
        size = 6 * self._groups.shape[1]
        self._scratch = np.zeros((size, 2 * size + 1))

    def __call__(
        self,
        jacobian: Array,
        torque: Array,
        variance: Array,
        lag: Array | None = None,
        hidden: Array | None = None,
    ) -> Array:
        """The wrenches (trials, sites, 6) for Jacobians (trials, sites, 6, n), torques and variances (trials, n).

        Args:
            jacobian, torque, variance: as above.
            lag: (trials, n) squares of what the torques lag behind [(N·m)²]. It widens the covariance and leaves the
                wrench alone: a torque that comes late is no weaker for it.
            hidden: (trials, n) the part of the variances that is friction of joints at rest [(N·m)²]; fills `beyond`.
        """
        _solve(
            jacobian,
            torque,
            variance,
            self._none if lag is None else lag,
            self._none if hidden is None else hidden,
            self.used,
            self._groups,
            self.precision,
            self._loosest,
            self.wrench,
            self.covariance,
            self.beyond,
            self.doubt,
            self._scratch,
        )
        return self.wrench


def _groups(used: Array) -> Array:
    """Sites whose chains share joints, a row each, filled up with -1."""
    groups: list[list[int]] = []
    for site in range(len(used)):
        together = [group for group in groups if any((used[site] & used[other]).any() for other in group)]
        groups = [group for group in groups if group not in together]
        groups.append(sorted([site, *(other for group in together for other in group)]))
    out = np.full((len(groups), max(len(group) for group in groups)), -1)
    for row, group in enumerate(sorted(groups)):
        out[row, : len(group)] = group
    return out
