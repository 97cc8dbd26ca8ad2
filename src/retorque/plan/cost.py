"""What a plan should achieve: equation 9, and anything else that can be expanded along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

TURN = 2.0 * np.pi


@dataclass(frozen=True, slots=True)
class Expansion:
    """A cost to second order along a trajectory, by small changes of state (2 nv) and input."""

    state_gradient: Array
    """(H+1, 2 nv)"""
    state_hessian: Array
    """(H+1, 2 nv, 2 nv) positive semidefinite; (2, 2 nv, 2 nv), running and final, where it stays the same."""
    input_gradient: Array
    """(H, inputs)"""
    input_hessian: Array
    """(H, inputs, inputs) positive definite; (1, inputs, inputs) where it stays the same."""

    def state_hessian_at(self, step: int) -> Array:
        """(2 nv, 2 nv) of a step; -1 is the end."""
        return self.state_hessian[step if len(self.state_hessian) > 2 or step < 0 else 0]

    def input_hessian_at(self, step: int) -> Array:
        """(inputs, inputs) of a step."""
        return self.input_hessian[step if len(self.input_hessian) > 1 else 0]


class Cost(Protocol):
    """An objective of states (H+1, 2 nv) and inputs (H, inputs) of a robot on a fixed base."""

    def value(self, states: Array, inputs: Array) -> float:
        """The cost of a trajectory."""
        ...

    def ending(self, states: Array) -> float:
        """The part that the last state has in it."""
        ...

    def expand(self, states: Array, inputs: Array) -> Expansion:
        """Its second-order model there."""
        ...


def _weights(name: str, value: Array | float, size: int, least: float) -> Array:
    """A diagonal or a symmetric matrix of weights as a matrix."""
    given = np.asarray(value, dtype=float)
    if given.ndim == 0:
        given = np.full(size, float(given))
    matrix = np.diag(given) if given.ndim == 1 else given
    if matrix.shape != (size, size) or not np.all(np.isfinite(matrix)):
        raise RetorqueError(f"{name} must be {size} finite weights, or a {size} x {size} matrix")
    if not np.allclose(matrix, matrix.T) or np.min(np.linalg.eigvalsh(matrix)) < least - 1e-12:
        kind = "positive definite" if least > 0.0 else "positive semidefinite"
        raise RetorqueError(f"{name} must be symmetric and {kind}; correct its weights")
    return matrix


class QuadraticCost:
    """Equation 9: half of (x - target)' Q (x - target) at every step and at the end, and of u' R u.

    Args:
        robot: joints without position limits that turn are angles on the circle: only their nearest way counts.
        target: (2 n,) positions, then velocities.
        running: Q_r, (2 n,) or (2 n, 2 n).
        final: Q_f, the same.
        effort: R, (inputs,) or (inputs, inputs).
        circle: (n,) which joints are angles on the circle; default: those that turn without limits.
    """

    def __init__(
        self,
        robot: Robot,
        target: Array,
        *,
        running: Array | float = 0.0,
        final: Array | float,
        effort: Array | float,
        circle: Array | None = None,
    ):
        if robot.floating:
            raise RetorqueError(f"robot '{robot.name}' has a free base; plans are for robots on a fixed one")
        n = robot.n
        self.target = np.array(target, dtype=float)
        if self.target.shape != (2 * n,) or not np.all(np.isfinite(self.target)):
            raise RetorqueError(f"a target must be {2 * n} finite numbers: {n} positions, then {n} velocities")
        inputs = int(np.count_nonzero(robot.torque_limit > 0.0))
        self.running = _weights("running", running, 2 * n, 0.0)
        self.final = _weights("final", final, 2 * n, 0.0)
        self.effort = _weights("effort", effort, inputs, 1e-9)
        free = np.array([joint.kind == "revolute" for joint in robot.joints]) & ~np.isfinite(robot.upper - robot.lower)
        self.circle = np.zeros(2 * n, dtype=bool)
        self.circle[:n] = free if circle is None else circle
        self.runs = bool(np.any(self.running))
        """Whether anything but the end and the effort counts."""
        self._angles = np.flatnonzero(self.circle).tolist()
        self._turns = self.circle.astype(np.int64)

    @property
    def weights(self) -> tuple[Array, ...]:
        """What compiled code takes; see `ilqr_kernels.WEIGHTS`."""
        return self.target, self._turns, self.running, self.final, self.effort

    def error(self, states: Array) -> Array:
        """(..., 2 n) from the target, angles by the nearest way."""
        error = states - self.target
        for k in self._angles:
            angle = error[..., k]
            error[..., k] = angle - TURN * np.round(angle / TURN)
        return error

    def value(self, states: Array, inputs: Array) -> float:
        total = self.ending(states) + 0.5 * float(np.vdot(inputs @ self.effort, inputs))
        if self.runs:
            error = self.error(states[:-1])
            total += 0.5 * float(np.vdot(error @ self.running, error))
        return total

    def ending(self, states: Array) -> float:
        last = self.error(states[-1])
        return float(0.5 * last @ self.final @ last)

    def expand(self, states: Array, inputs: Array) -> Expansion:
        if self.runs:
            error = self.error(states)
            gradient = error @ self.running
            gradient[-1] = self.final @ error[-1]
        else:
            gradient = np.zeros_like(states)
            gradient[-1] = self.final @ self.error(states[-1])
        return Expansion(gradient, np.stack([self.running, self.final]), inputs @ self.effort, self.effort[None])
