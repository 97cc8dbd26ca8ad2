"""A square-root Kalman filter over whitened unknowns, batched over trials, with directional forgetting.

The covariance is S Sᵀ and only S is kept, so it is positive semi-definite whatever rounding does. A measurement of m
numbers takes Andrews' form of Potter's update: with F = SᵀHᵀ, C = FᵀF + R = U Uᵀ and R = V Vᵀ,

    S⁺ = S (1 - F U⁻ᵀ (U + V)⁻¹ Fᵀ).

Forgetting widens S only along F, the directions that the measurement is about to inform, and never beyond the prior:
what the motion does not excite neither wanders nor is lost.
"""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array


class SquareRootFilter:
    """`trials` filters of `size` unknowns that start at z ~ N(0, 1)."""

    remembered = ("mean", "root")

    def __init__(self, trials: int, size: int, forgetting: float):
        self.trials, self.size = trials, size
        self.forgetting = forgetting
        self.mean = np.zeros((trials, size))
        self.root = np.empty((trials, size, size))
        self.reset()

    def reset(self) -> None:
        """Back to the prior."""
        self.mean[:] = 0.0
        self.root[:] = np.eye(self.size)

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Expected measurement H z (trials, m), and F = SᵀHᵀ (trials, size, m), whose FᵀF is its covariance."""
        expected = np.matmul(rows, self.mean[..., None])[..., 0]
        return expected, np.matmul(np.swapaxes(self.root, -1, -2), np.swapaxes(rows, -1, -2))

    def update(self, innovation: Array, rows: Array, spread: Array, noise: Array, *, forget: bool = True) -> None:
        """Take in a measurement.

        Args:
            innovation: measured minus expected (trials, m).
            rows: H (trials, m, size); a row of zeros is a measurement that is left out.
            spread: F of `predict` (trials, size, m).
            noise: variance of each measurement (trials, m).
            forget: whether it takes the place of older ones.
        """
        if forget and self.forgetting < 1.0:
            spread = self._forget(rows, spread)
        turned = np.swapaxes(spread, -1, -2)
        covariance = np.matmul(turned, spread)
        index = np.arange(noise.shape[-1])
        covariance[:, index, index] += noise
        upper = np.linalg.cholesky(covariance)
        deviation = upper.copy()
        deviation[:, index, index] += np.sqrt(noise)
        # K = S F C⁻¹ and S⁺ = S - (S F) U⁻ᵀ (U + V)⁻¹ Fᵀ share the product S F.
        reach = np.matmul(self.root, spread)
        inverse = np.linalg.inv(upper)
        gain = np.matmul(np.matmul(reach, np.swapaxes(inverse, -1, -2)), np.matmul(inverse, innovation[..., None]))
        self.mean += gain[..., 0]
        middle = np.matmul(np.swapaxes(inverse, -1, -2), np.linalg.inv(deviation))
        self.root -= np.matmul(np.matmul(reach, middle), turned)
        if forget and self.forgetting < 1.0:
            self._cap()

    def widen(self, trial: int, columns: Array) -> None:
        """Add independent doubt to one trial's unknowns: the covariance grows by D Dᵀ, D being (size, m)."""
        both = np.concatenate([self.root[trial].T, columns.T])
        self.root[trial] = np.asarray(np.linalg.qr(both, mode="r")).T

    def walk(self, trials: Array, part: slice, deviation: float) -> None:
        """Let some unknowns of some trials (k,) move by so many prior standard deviations."""
        count = len(range(*part.indices(self.size)))
        step = np.zeros((len(trials), count, self.size))
        step[:, :, part] = deviation * np.eye(count)
        both = np.concatenate([np.swapaxes(self.root[trials], -1, -2), step], axis=1)
        self.root[trials] = np.swapaxes(np.linalg.qr(both, mode="r"), -1, -2)

    def renew(self, trials: Array, part: slice) -> None:
        """Some unknowns at the end of some trials (k,) are others than before: back to their prior, others kept."""
        kept = part.start
        if len(trials) == 0:
            return
        others = np.swapaxes(self.root[trials, :kept], -1, -2)  # (k, size, kept)
        self.root[trials] = np.eye(self.size)
        self.root[trials, :kept, :kept] = np.swapaxes(np.linalg.qr(others, mode="r"), -1, -2)
        self.mean[trials, kept:] = 0.0

    def project(self, trials: Array, rows: Array, change: Array) -> None:
        """Move some trials' means onto a constraint, the likeliest way: z += P cᵀ (c P cᵀ)⁻¹ change.

        Args:
            trials: which ones (k,).
            rows: c (k, size).
            change: how much c z must change (k,).
        """
        root = self.root[trials]
        spread = np.matmul(np.swapaxes(root, -1, -2), rows[..., None])
        step = np.matmul(root, spread)[..., 0] / np.maximum(np.sum(spread[..., 0] ** 2, axis=-1), 1e-12)[:, None]
        self.mean[trials] += step * change[:, None]

    def _cap(self) -> None:
        """Bring the unknown that is wider than its prior most, where there is one, back to the prior's width.

        It is a measurement of the prior mean with just the noise that does so: forgetting never forgets the prior.
        """
        width = np.einsum("tij,tij->ti", self.root, self.root)
        worst = np.argmax(width, axis=1)
        trials = np.flatnonzero(width[np.arange(self.trials), worst] > 1.0 + 1e-9)
        if len(trials) == 0:
            return
        index = worst[trials]
        spread = self.root[trials, index]  # (k, size)
        now = width[trials, index]
        reach = np.einsum("kij,kj->ki", self.root[trials], spread)
        gain = 1.0 - 1.0 / now
        self.mean[trials] -= reach * (gain / now * self.mean[trials, index])[:, None]
        shrink = (1.0 - np.sqrt(1.0 - gain)) / now
        self.root[trials] -= (shrink[:, None] * reach)[:, :, None] * spread[:, None, :]

    def _forget(self, rows: Array, spread: Array) -> Array:
        """Widen S along F; returns the new F."""
        now = np.sum(spread * spread, axis=1)  # (trials, m) variance of each row
        prior = np.sum(rows * rows, axis=2)
        room = np.clip(1.0 - now / np.maximum(prior, 1e-12), 0.0, 1.0)
        grow = (1.0 / np.sqrt(self.forgetting) - 1.0) * room  # (trials, m)
        size = np.sqrt(np.maximum(now, 1e-18))
        unit = spread / size[:, None, :]
        # Rows are nearly orthogonal in practice; a Gram inverse makes the sum a projection all the same.
        gram = np.matmul(np.swapaxes(unit, -1, -2), unit)
        index = np.arange(gram.shape[-1])
        gram[:, index, index] += 1e-6
        push = np.matmul(unit, np.linalg.inv(gram) * np.sqrt(grow[:, :, None] * grow[:, None, :]))
        self.root += np.matmul(np.matmul(self.root, push), np.swapaxes(unit, -1, -2))
        return spread + np.matmul(unit, np.matmul(np.swapaxes(push, -1, -2), spread))
