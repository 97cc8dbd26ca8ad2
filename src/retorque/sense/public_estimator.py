"""The public code's wrench estimate in our controller, for comparison."""

from __future__ import annotations

import numpy as np

from retorque.robots.state import State
from retorque.sense.public_code import separate_solves
from retorque.sense.wrench_estimator import WrenchEstimate, WrenchEstimator


class PublicCodeEstimator(WrenchEstimator):
    """Force and moment by separate damped solves of the smoothed torque; trusted always, as published."""

    def update(self, state: State) -> WrenchEstimate:
        if self._fresh:
            self.reset(state)
        self.tree.at(state)
        torque = self.torque.update(state, self.tree).torque
        wrench = separate_solves(self.tree.jacobian, torque, self.solve.used)
        trials, sites = wrench.shape[:2]
        return WrenchEstimate(
            wrench,
            np.zeros((trials, sites, 6, 6)),
            np.ones((trials, sites), dtype=bool),
            np.zeros(trials, dtype=np.int64),
        )
