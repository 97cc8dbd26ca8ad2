"""The physically consistent estimate: least squares under a pseudo-inertia inequality for every link (equation 10)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from retorque.identify.methods.estimate import Estimate
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import reference_pseudo_inertia
from retorque.identify.regression.regression import (
    Posterior,
    base_deviation,
    card_belief,
    compress,
    learn_noise,
    posterior,
)
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction
from retorque.physics.inertia import pseudo_inertia
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

_ROW = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 3])  # upper triangle of a 4 x 4 matrix, column by column
_COLUMN = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
_TWICE = np.where(_ROW == _COLUMN, 1.0, np.sqrt(2.0))  # so that the vector's norm is the matrix's


@dataclass(frozen=True, kw_only=True)
class SemidefiniteProgram:
    """The most probable parameters among those that could exist."""

    margin: float = 1e-3
    """Each link's pseudo-inertia stays above this part of the card's own, so that no link is merely on the edge."""

    def fit(self, data: MotionSource, robot: Robot, friction: Friction) -> Estimate:
        """Learn physically consistent parameters from a motion."""
        begun = time.perf_counter()
        layout = Layout(robot, friction)
        factors = compress(data, layout)
        prior = card_belief(factors)
        noise = learn_noise(factors, data, prior)
        belief = posterior(factors, noise.weight, prior)
        parameters, status = project(belief, layout, self.margin)
        base = base_parameters(layout)
        return Estimate(
            robot=robot,
            method="sdp",
            friction=friction,
            parameters=parameters,
            covariance=belief.covariance,
            base_deviation=base_deviation(factors, noise.weight, base),
            noise=noise.deviation,
            correlation=noise.correlation,
            samples=factors.count,
            prior_deviation=prior.deviation,
            details={"status": status, "seconds": time.perf_counter() - begun},
        )


def project(belief: Posterior, layout: Layout, margin: float = 1e-3) -> tuple[Array, str]:
    """The point of highest posterior density that is physically consistent, and the solver's status.

    Args:
        belief: the unconstrained posterior.
        layout: what the parameters mean.
        margin: each link's pseudo-inertia stays above this part of the card's.
    """
    links = [
        BoundedBody(start=10 * index, reference=reference, margin=margin)
        for index, reference in enumerate(reference_pseudo_inertia(layout.robot))
    ]
    return nearest(belief, np.flatnonzero(layout.nonnegative), links)


@dataclass(frozen=True, kw_only=True)
class BoundedBody:
    """Ten parameters in a row that must be those of a body that can exist."""

    start: int
    """Index of the first of the ten."""
    reference: Array
    """(4, 4) a pseudo-inertia of the right size, in which the inequality is measured."""
    margin: float


def nearest(belief: Posterior, nonnegative: Array, bodies: list[BoundedBody]) -> tuple[Array, str]:
    """Minimise |root (x - mean)|² over vectors whose bodies can exist and whose bounded entries are not negative.

    With z = root (x - mean) the objective is |z|², so the program is well scaled however unevenly the log excites the
    parameters. A body's inequality is taken relative to its reference, L⁻¹ P L⁻ᵀ ≥ margin, for the same reason.
    """
    import clarabel  # here, so that the other methods start without it

    size = len(belief.mean)
    back = solve_triangular(belief.root, np.eye(size))  # x = mean + back z
    unit = np.maximum(np.linalg.norm(back[nonnegative], axis=1), 1e-300)
    rows = [-back[nonnegative] / unit[:, None]]
    right = [belief.mean[nonnegative] / unit]
    basis = pseudo_inertia(np.eye(10))  # (10, 4, 4)
    for body in bodies:
        whitener = np.linalg.inv(np.linalg.cholesky(body.reference))
        white = np.einsum("ij,ajk,lk->ail", whitener, basis, whitener)  # (10, 4, 4)
        vectors = (white[:, _ROW, _COLUMN] * _TWICE).T  # (10 entries, 10 parameters)
        span = slice(body.start, body.start + 10)
        rows.append(-vectors @ back[span])
        right.append(vectors @ belief.mean[span] - body.margin * np.where(_ROW == _COLUMN, 1.0, 0.0))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    solver = clarabel.DefaultSolver(
        sparse.identity(size, format="csc"),
        np.zeros(size),
        sparse.csc_matrix(np.concatenate(rows)),
        np.concatenate(right),
        [clarabel.NonnegativeConeT(len(nonnegative)), *[clarabel.PSDTriangleConeT(4)] * len(bodies)],
        settings,
    )
    solution = solver.solve()
    status = str(solution.status)
    if status not in ("Solved", "AlmostSolved"):
        raise RetorqueError(
            f"the physically consistent program did not solve ({status}); check units, drive gains and joint order"
        )
    vector = belief.mean + back @ np.array(solution.x)
    vector[nonnegative] = np.maximum(vector[nonnegative], 0.0)
    return vector, status
