"""When the next plan should begin: as soon as it can be ready, and not sooner."""

from __future__ import annotations

from collections import deque

import numpy as np

from retorque.work.errors import unknown

RULES = ("quantile", "paper", "fixed")


class StartTime:
    """The lead between the start of a solve and the start of its plan.

    Args:
        rule: "quantile": what `share` of recent solves took; "paper": the last solve's iterations times the profiled
            time of one; "fixed": always the same.
        iteration_time: profiled time of an iteration [s].
        fixed: lead of the fixed rule, and of the first solve [s].
        share: of the quantile.
        most: longest lead [s].
    """

    def __init__(
        self,
        rule: str,
        *,
        iteration_time: float,
        fixed: float,
        share: float = 0.9,
        most: float = 0.2,
    ):
        if rule not in RULES:
            raise unknown("rule for the start of a plan", rule, RULES)
        self.rule, self.iteration_time, self.fixed, self.share, self.most = rule, iteration_time, fixed, share, most
        self.reset()

    def reset(self) -> None:
        """Forget the solves so far."""
        self._times: deque[float] = deque(maxlen=40)
        self._iterations = 0

    def solved(self, seconds: float, iterations: int) -> None:
        """A solve took so long."""
        self._times.append(seconds)
        self._iterations = iterations

    def lead(self) -> float:
        """[s]"""
        if self.rule == "fixed" or not self._times:
            return self.fixed
        if self.rule == "paper":
            return min(self.iteration_time * self._iterations, self.most)
        return min(float(np.quantile(self._times, self.share)), self.most)
