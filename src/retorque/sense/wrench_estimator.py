"""From a robot's report to the wrenches at its sites: torque, tare, solve, and what not to trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retorque.control.comply.comply_code import ComplyCode
from retorque.physics.kernels.compiled import kernel
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.external_torque import LEFT_OUT, ExternalTorque, QuasiStatic
from retorque.sense.report_checks import ReportChecks
from retorque.sense.wrench_solve import WrenchPrior, WrenchSolve
from retorque.work.array import Array

MISSING, STOPPED, UNEXPLAINED = int(ComplyCode.MISSING), int(ComplyCode.FROZEN), int(ComplyCode.UNEXPLAINED)
SINGULAR, STICTION, DRIFT = int(ComplyCode.SINGULAR), int(ComplyCode.STICTION), int(ComplyCode.DRIFT)
RESTS = 0.9
"""Share of rest above which friction hides a joint's torque."""


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """Settings of the wrench estimate around its solve."""

    tare: bool = True
    """Whether what is felt in free space is taken off."""
    tare_time: float = 5.0
    """Time constant of the tare [s]."""
    tare_after: float = 1.5
    """Time without contact after which an offset is looked for [s]."""
    tare_limit: float = 3.0
    """Largest offset that a tare may take off, in standard deviations of the torque; beyond: drift."""
    contact_force: float = 0.5
    """Force above which something may touch, once it is beyond three standard deviations [N]."""
    begins_free: float = 0.8
    """Time after a reset in which nothing is taken to touch the robot [s]."""
    free_after: float = 0.3
    """Time without contact after which space counts as free [s]."""
    unexplained: float = 12.0
    """Mean squared residual of the joints, in variances, above which no wrench at the sites explains them."""
    spread: float = 1.0
    """Factor on the covariance that is reported; it changes nothing that is felt or trusted."""
    hiding: float = 1.0
    """Another on the part of it that joints at rest may hide together."""
    weak: float = 0.7
    """Share of the prior's variance left in some direction above which the estimate is not to be trusted."""


@dataclass(slots=True)
class WrenchEstimate:
    """Wrenches on the robot at its sites, in world axes."""

    wrench: Array
    """(trials, sites, 6) force [N], then moment about the site [N·m]."""
    covariance: Array
    """(trials, sites, 6, 6)"""
    trusted: Array
    """(trials, sites) whether it should be acted upon."""
    codes: Array
    """(trials,) `ComplyCode`s."""


def own_joints(tree: CompiledTree) -> Array:
    """(sites, n) joints that move one site only; where a site has no such joint, all that move it."""
    alone = tree.on_chain & (tree.on_chain.sum(axis=0) == 1)
    return np.where(alone.any(axis=1, keepdims=True), alone, tree.on_chain)


class WrenchEstimator:
    """Wrenches at several sites of one robot or a batch; it is the `WrenchSource` of compliance.

    Args:
        robot: the robot.
        sites: names of frames that the world may touch.
        torque: estimate of the external joint torque.
        priors: of the wrenches, one for all or one each.
        settings: tare and trust.
        trials: robots served at once.
        timestep: control period [s].
    """

    def __init__(
        self,
        robot: Robot,
        sites: Sequence[str],
        torque: ExternalTorque,
        priors: WrenchPrior | Sequence[WrenchPrior] = WrenchPrior(),  # noqa: B008
        settings: EstimatorSettings | None = None,
        trials: int = 1,
        timestep: float = 0.02,
    ):
        self.settings = settings or EstimatorSettings()
        self.tree = CompiledTree(robot, tuple(robot.frame(name) for name in sites), trials)
        self.torque, self.timestep = torque, timestep
        used = own_joints(self.tree)
        self.solve = WrenchSolve(used, priors, trials)
        self._any: Array = np.asarray(used.any(axis=0))
        self._checks = None
        if isinstance(torque, QuasiStatic):
            self._checks = ReportChecks(torque.motor, trials, timestep, self._any)
        self._shape = (trials, robot.n)
        self._offset = np.zeros(self._shape)
        self._free_for = np.zeros((trials, len(sites)))
        s = self.settings
        tares = (s.free_after, s.tare_after, s.tare_time, s.tare_limit, 1.0 if s.tare else 0.0)
        self._limits = np.array([s.unexplained, s.weak, s.contact_force, s.begins_free, s.spread, s.hiding, *tares])
        self._calm, self._codes = np.zeros(self._shape, dtype=bool), np.zeros(trials, dtype=np.int64)
        self._trusted = np.ones((trials, len(sites)), dtype=bool)
        self._estimate = WrenchEstimate(self.solve.wrench, self.solve.covariance, self._trusted, self._codes)
        self._settles = isinstance(torque, QuasiStatic) and torque.settings.friction
        self._age = 0.0
        self._fresh = True

    def reset(self, state: State) -> None:
        """A run begins here: nothing is tared."""
        self.torque.reset(state)
        if self._checks is not None:
            self._checks.reset()
        self._offset[:] = 0.0
        self._free_for[:] = 0.0
        self._age = 0.0
        self._fresh = False

    def update(self, state: State) -> WrenchEstimate:
        """The wrenches at a report; once a tick, and written over at the next."""
        if self._fresh:
            self.reset(state)
        s, solve = self.settings, self.solve
        self._limits[-1] = 1.0 if s.tare else 0.0
        self.tree.at(state)
        estimate = self.torque.update(state, self.tree)
        torque, variance = estimate.torque - self._offset, estimate.variance
        codes: Array = self._codes
        codes[:] = 0
        if self._checks is not None:
            left_out, found = self._checks.check(state)
            if self._checks.found:
                codes[:] = found
                torque, variance = np.where(left_out, 0.0, torque), np.where(left_out, LEFT_OUT, variance)
        solve(self.tree.jacobian, torque, variance, estimate.lag, estimate.hidden)
        self._age += self.timestep
        settled = _judge(
            self._limits,
            self.timestep,
            self._age,
            solve.wrench,
            solve.covariance,
            solve.beyond,
            solve.doubt,
            solve.used,
            estimate.torque,
            variance,
            estimate.resting,
            self._free_for,
            self._offset,
            self._calm,
            codes,
            self._trusted,
        )
        if s.tare and self._settles and settled:
            assert isinstance(self.torque, QuasiStatic)
            self.torque.settle(estimate.torque, self._calm)
        return self._estimate


@kernel
def _judge(
    limits: Array,
    dt: float,
    age: float,
    wrench: Array,
    covariance: Array,
    beyond: Array,
    doubt: Array,
    used: Array,
    torque: Array,
    variance: Array,
    resting: Array,
    free_for: Array,
    offset: Array,
    calm: Array,
    codes: Array,
    trusted: Array,
) -> bool:
    """Fill trust, codes, calm joints and offsets; whether any joint is calm; see `EstimatorSettings`."""
    settled = False
    misfit, weakness = doubt[0], doubt[1]
    unexplained, weak, touch, begins, factor, hiding, free_after, tare_after, tare_time, tare_limit, tare = limits
    for t in range(wrench.shape[0]):
        bad = codes[t] & (MISSING | STOPPED)
        for j in range(torque.shape[1]):
            calm[t, j] = False
        for s in range(wrench.shape[1]):
            odd = misfit[t, s] > unexplained
            size, spread = 0.0, 0.0
            for i in range(3):
                size += wrench[t, s, i] ** 2
                spread += covariance[t, s, i, i]
            if odd:
                codes[t] |= UNEXPLAINED
            # Only what is reported grows by what rest hides: contact is looked for, and tared, without it.
            for i in range(6):
                for k in range(6):
                    wide = covariance[t, s, i, k] * (misfit[t, s] if odd else 1.0)
                    covariance[t, s, i, k] = factor * (wide + hiding * beyond[t, s, i, k])
            if weakness[t, s] > weak:
                codes[t] |= SINGULAR
            trusted[t, s] = not (odd or weakness[t, s] > weak or bad)
            free = age < begins or not (size**0.5 > max(touch, 3.0 * spread**0.5) or odd)
            free_for[t, s] = free_for[t, s] + dt if free else 0.0
            for j in range(torque.shape[1]):
                if not used[s, j]:
                    continue
                if resting[t, j] > RESTS:
                    codes[t] |= STICTION
                if tare == 0.0 or free_for[t, s] <= free_after:
                    continue
                calm[t, j] = True
                settled = True
                if free_for[t, s] > tare_after:
                    bound = tare_limit * variance[t, j] ** 0.5
                    moved = offset[t, j] + dt / tare_time * (torque[t, j] - offset[t, j])
                    offset[t, j] = min(bound, max(-bound, moved))
                    if abs(moved) > bound:
                        codes[t] |= DRIFT
        if codes[t] & DRIFT:
            for s in range(wrench.shape[1]):
                trusted[t, s] = False
    return settled
