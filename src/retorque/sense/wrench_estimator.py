"""From a robot's report to the wrenches at its sites: torque, tare, solve, and what not to trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retorque.control.comply_code import DOUBTED, ComplyCode
from retorque.physics.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.external_torque import LEFT_OUT, ExternalTorque, QuasiStatic
from retorque.sense.report_checks import ReportChecks
from retorque.sense.wrench_solve import WrenchPrior, WrenchSolve
from retorque.work.array import Array


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
        """The wrenches at a report; once a tick."""
        if self._fresh:
            self.reset(state)
        s, solve = self.settings, self.solve
        self.tree.at(state)
        estimate = self.torque.update(state, self.tree)
        torque, variance = estimate.torque - self._offset, estimate.variance
        codes = np.zeros(self._shape[0], dtype=np.int64)
        if self._checks is not None:
            left_out, codes = self._checks.check(state)
            if left_out.any():
                torque, variance = np.where(left_out, 0.0, torque), np.where(left_out, LEFT_OUT, variance)
        solve(self.tree.jacobian, torque, variance)
        odd = solve.misfit > s.unexplained
        if odd.any():
            codes = codes | np.where(odd.any(axis=-1), int(ComplyCode.UNEXPLAINED), 0)
            solve.covariance *= np.where(odd, solve.misfit, 1.0)[..., None, None]
        weak = solve.weakness > s.weak
        if weak.any():
            codes = codes | np.where(weak.any(axis=-1), int(ComplyCode.SINGULAR), 0)
        if s.tare:
            codes = codes | self._tare(estimate.torque, variance, odd)
        if (estimate.resting[:, self._any] > 0.9).any():
            codes = codes | int(ComplyCode.STICTION)
        trusted = (
            ~(odd | weak) & ((codes & int(DOUBTED & ~ComplyCode.SINGULAR & ~ComplyCode.UNEXPLAINED)) == 0)[:, None]
        )
        return WrenchEstimate(solve.wrench, solve.covariance, trusted, codes)

    def _tare(self, torque: Array, variance: Array, odd: Array) -> Array:
        """Take off what is felt in free space; the codes that come of it (trials,)."""
        s, dt = self.settings, self.timestep
        force = self.solve.wrench[..., :3]
        size = np.sqrt(np.einsum("tsi,tsi->ts", force, force))
        spread = np.sqrt(np.einsum("tsii->ts", self.solve.covariance[..., :3, :3]))
        free = ~((size > np.maximum(s.contact_force, 3.0 * spread)) | odd)  # (trials, sites)
        self._age += dt
        free |= self._age < s.begins_free
        self._free_for = np.where(free, self._free_for + dt, 0.0)
        calm = self._joints_of(self._free_for > s.free_after)
        if not calm.any():
            return np.zeros(len(calm), dtype=np.int64)
        if isinstance(self.torque, QuasiStatic) and self.torque.settings.friction:
            self.torque.settle(torque, calm)
        bound = s.tare_limit * np.sqrt(variance)
        step = self._joints_of(self._free_for > s.tare_after) * (dt / s.tare_time) * (torque - self._offset)
        moved = self._offset + step
        self._offset = np.clip(moved, -bound, bound)
        drifted = (np.abs(moved) > bound)[:, self._any].any(axis=-1)
        return np.where(drifted, int(ComplyCode.DRIFT), 0)

    def _joints_of(self, sites: Array) -> Array:
        """(trials, n) joints of some sites (trials, sites)."""
        return np.asarray(sites @ self.solve.used)
