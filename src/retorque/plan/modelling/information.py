"""Identification by information: exact covariances, tests for change on the newest samples, a window that follows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc

from retorque.plan.modelling.change import Doubt, doubts, honest_deviation, surprise
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import FittedWindow, Prediction, WindowFit
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class InformationSettings:
    """Settings of `information`."""

    longest: int = 100
    """Samples in the window, at most."""
    lags: tuple[int, ...] = (2, 4, 7, 10)
    """Samples over which the newest are predicted from an estimate that has not seen them."""
    alarm: float = 1e-6
    """Chance of a false alarm of one such test."""
    prior: float = 0.5
    """Standard deviation of the parameters beforehand, as a share of the width of their bounds."""
    patience: int = 10
    """Updates with something unidentifiable before the robot explores."""
    iterations: int = 6
    """Of a fit."""
    hazard: float = 1.0
    """Changes that are expected in a second [1/s]: a band must hold the truth when one has just happened, or could not
    be seen."""
    doubts: tuple[int, ...] = (4, 10, 20, 40, 80)
    """Samples ago at which a change is held possible."""
    looked_at: int = 20
    """Of these samples, at most, to tell whether it happened."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """An estimate that later samples are held against."""

    number: int
    fit: FittedWindow


class Information(Modeller):
    """The most likely parameters of all samples since the last change, and how sure they are.

    A change is found when samples since an older estimate cannot be predicted from it: the squared prediction errors,
    in units of their exact covariance, follow a chi-square distribution as long as nothing has changed. The window then
    starts at that estimate. Directions that the window says less about than the prior stay where they are, and the
    parameters that point there are named.

    Args:
        free: what is unknown.
        fit: fits windows.
        settings: window and tests.
    """

    name = "information"

    def __init__(self, free: FreeParameters, fit: WindowFit, settings: InformationSettings | None = None):
        self.fit, self.settings = fit, settings or InformationSettings()
        self.longest = self.settings.longest + 1
        self._prior = np.diag(1.0 / np.square(self.settings.prior * free.span))
        super().__init__(free)

    def reset(self) -> None:
        super().reset()
        self._since = 0
        self._centre = self.free.guess
        self._anchors: deque[Anchor] = deque(maxlen=1 + max(*self.settings.lags, *self.settings.doubts))
        self._state: Array | None = None
        self._unseen = 0
        self._level = 1.0

    def update(self, samples: Samples) -> Model:
        """One fit, after the tests for change."""
        changed = self._test(samples)
        count = min(samples.number - self._since + 1, self.settings.longest + 1, len(samples.states))
        if count < 2:
            return self.model
        recent = samples.last(count)
        found = self._fitted(recent, changed)
        if found is None:
            return self.model
        # Model errors show as a misfit above the noise: they widen what is believed.
        freedom = max(1, int(np.sum(recent.valid)) * recent.states.shape[1] - recent.states.shape[1] - self.free.size)
        self._level = max(1.0, found.misfit / freedom)
        self._anchors.append(Anchor(samples.number, found))
        p, frozen, seen = self._frozen(found)
        self._unseen = self._unseen + 1 if frozen else 0
        deviation = np.sqrt(self._level * np.maximum(np.diag(found.covariance), 0.0))
        model = Model(
            p=p,
            deviation=honest_deviation(p, deviation, self._doubts(samples), self.free.span),
            time=samples.time,
            confidence=seen,
            exploring=self._unseen > self.settings.patience,
            changed=changed,
            window=count,
            frozen=frozen,
            offset=found.offset,
        )
        return self._publish(model)

    def _fitted(self, recent: Samples, changed: bool) -> FittedWindow | None:
        guesses = [self.model.p]
        if changed or len(recent.states) <= 12:
            guesses.append(self.free.clip(self.free.lower + 0.5 * self.free.span))
        best: FittedWindow | None = None
        for guess in guesses:
            found = self.fit.fit(recent, guess, self._prior, centre=self._centre, iterations=self.settings.iterations)
            if found is not None and (best is None or self._cost(found) < self._cost(best)):
                best = found
        return best

    def _cost(self, found: FittedWindow) -> float:
        off = found.p - self._centre
        return found.misfit + float(off @ self._prior @ off)

    def _test(self, samples: Samples) -> bool:
        """Whether the newest samples cannot be what an older estimate predicts; moves the window's start if so."""
        for anchor in reversed(self._anchors):
            lag = samples.number - anchor.number
            if lag not in self.settings.lags:
                continue
            seen = self._seen(samples, anchor)
            if seen is not None and chdtrc(len(seen.errors), surprise(seen, self._level)) < self.settings.alarm:
                self._since = anchor.number
                self._centre = self.model.p
                self._anchors.clear()
                return True
        return False

    def _doubts(self, samples: Samples) -> list[Doubt]:
        """What the parameters may be if they changed a while ago and no test has found it."""
        out: list[Doubt] = []
        ago = self.settings.doubts
        between = [0.0, *((a + b) / 2.0 for a, b in pairwise(ago)), float(self.settings.longest)]
        for anchor in self._anchors:
            lag = samples.number - anchor.number
            seen = self._seen(samples, anchor, self.settings.looked_at) if lag in ago else None
            if seen is not None:
                k = ago.index(lag)
                odds = self.settings.hazard * self.fit.dynamics.timestep * (between[k + 1] - between[k])
                out += doubts(seen, self.settings.prior * self.free.span, odds, self._level)
        return out

    def _seen(self, samples: Samples, anchor: Anchor, most: int = 0) -> Prediction | None:
        """What an estimate says of the samples since; None where it was too young to say anything."""
        lag = samples.number - anchor.number
        if lag + 1 > len(samples.states) or anchor.number < self._since + 3:
            return None
        return self.fit.predicted(samples.last(lag + 1), anchor.fit, most)

    def _frozen(self, found: FittedWindow) -> tuple[Array, tuple[str, ...], float]:
        """The parameters with what the window says little about as it was, its names, and the share that is seen."""
        scale = 1.0 / np.sqrt(np.diag(self._prior))
        window = (found.information - self._prior) * scale * scale[:, None] / self._level
        values, vectors = np.linalg.eigh(window)
        dark = values < 1.0
        names = {self.free.labels[int(np.argmax(np.abs(vectors[:, k])))] for k in np.flatnonzero(dark)}
        seen = float(np.mean(np.clip(values / (1.0 + np.abs(values)), 0.0, 1.0)))
        bright = vectors[:, ~dark]
        last = self.model.p
        p = last + scale * (bright @ (bright.T @ ((found.p - last) / scale)))
        return self.free.clip(p), tuple(sorted(names)), seen
