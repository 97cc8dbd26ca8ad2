"""The paper's ways to keep parameters up to date: its own (algorithm 1), and the three it is compared with."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from retorque.plan.modelling.confidence import Confidence
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import WindowFit
from retorque.work.array import Array

KEPT = 5
"""Solutions that `smooth` and `weighted` average over."""


class Naive(Modeller):
    """The parameters that fit the newest T samples best, from a first state as it was measured.

    Args:
        free: what is unknown.
        fit: fits windows.
        samples: T.
        confidence: the scores.
    """

    name = "naive"

    def __init__(self, free: FreeParameters, fit: WindowFit, samples: int, confidence: Confidence):
        self.fit, self.samples, self.confidence = fit, samples, confidence
        self.longest = samples + 1
        super().__init__(free)

    def reset(self) -> None:
        super().reset()
        self._solutions: deque[tuple[Array, float]] = deque(maxlen=KEPT)
        self._low = 0
        self._weight = 0.0

    def update(self, samples: Samples) -> Model:
        recent = samples.last(self.samples + 1)
        if len(recent.states) < self.samples + 1 or not recent.valid.all():
            return self.model
        weak = np.diag(1e-6 / np.square(self.free.span))
        found = self.fit.fit(recent, self.model.p, weak, known_first=True)
        if found is None:
            return self.model
        score = self.confidence.value(recent.states, self.fit.dynamics.timestep)
        self._solutions.append((found.p, score))
        base = replace(self.model, time=samples.time, confidence=score, window=self.samples, changed=False)
        return self._publish(self._choose(base, found.p, score))

    def _choose(self, now: Model, p: Array, score: float) -> Model:
        """The next model, after a solution and its score."""
        return replace(now, p=p)


class Smooth(Naive):
    """The mean of the last five solutions."""

    name = "smooth"

    def _choose(self, now: Model, p: Array, score: float) -> Model:
        return replace(now, p=np.mean([solution for solution, _ in self._solutions], axis=0))


class Weighted(Naive):
    """The mean of the last five solutions, weighted by their confidence (equation 1)."""

    name = "weighted"

    def _choose(self, now: Model, p: Array, score: float) -> Model:
        weights = np.array([weight for _, weight in self._solutions]) + 1e-12
        solutions = np.array([solution for solution, _ in self._solutions])
        return replace(now, p=weights @ solutions / np.sum(weights))


class Paper(Naive):
    """Algorithm 1: average while the solution stays, start anew when it changes, explore when nothing is seen.

    Its text and algorithm test confidence against eps1 and change against eps2; Table I, and the public code, have it
    the other way round, which is followed here. The counter of low confidences counts those in a row, as the text says.

    Args:
        free, fit, samples, confidence: as of `Naive`.
        change: eps1 of Table I, by the largest difference of a parameter.
        least: eps2 of Table I.
        patience: N_his, solutions of low confidence in a row before the robot explores; the paper does not print it.
    """

    name = "paper"

    def __init__(
        self,
        free: FreeParameters,
        fit: WindowFit,
        samples: int,
        confidence: Confidence,
        *,
        change: float,
        least: float,
        patience: int = 10,
    ):
        self.change, self.least, self.patience = change, least, patience
        super().__init__(free, fit, samples, confidence)

    def _choose(self, now: Model, p: Array, score: float) -> Model:
        if score <= self.least:
            self._low += 1
            exploring = now.exploring or self._low > self.patience
            if self._low > self.patience:
                self._low = 0
            return replace(now, exploring=exploring)
        self._low = 0
        if float(np.max(np.abs(p - now.p))) < self.change:
            mean = (now.p * self._weight + p * score) / (self._weight + score)
            self._weight += score
            return replace(now, p=mean, exploring=False)
        self._weight = score
        return replace(now, p=p, exploring=False, changed=True)
