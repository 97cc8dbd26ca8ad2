"""The recursive adapter that knows contact from mismatch."""

from __future__ import annotations

import numpy as np

from retorque.adapt.recursive.adapter import Recursive
from retorque.adapt.recursive.equation import Equation
from retorque.adapt.recursive.waiting import Waiting
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.robots.state import State
from retorque.work.array import Array

SUSPECT = 45.0
"""Squared Mahalanobis distance of an innovation above which something touches the robot."""
CLEAR = 20.0
"""... below which it has let go, after it stayed there for CALM."""
CALM = 0.04
"""[s]"""
LONGEST = 1.2
"""A contact that lasts longer is taken for a change of the robot, and learnt [s]."""
LEAD = 0.03
"""How far the external torque is extrapolated at the most [s]."""
DELAY = 4
"""Updates that an equation waits before it is learnt from: a contact shows only after it has begun."""


class RecursiveContact(Recursive):
    """Learns as `Recursive` does, but only from equations that no contact touches, and lets contact through.

    An equation whose innovation is beyond what the estimate's own covariance, the noise and the usual disturbance allow
    is contact: nothing is learnt from it nor from the few that waited before it, and the residual is the external
    torque w. With it the correction is Φ(q, q̇, F₀(q, q̇, τ⁰, w), w): the robot yields as the ideal one would (eq. 1).
    """

    authority = 0.7
    """Largest answer to an external torque, as a multiple of it."""
    remembered: tuple[str, ...] = (
        *Recursive.remembered,
        "contact",
        "_touched",
        "_calm",
        "_external",
        "_external_rate",
        "_share",
        "_waiting",
    )

    @property
    def _strength(self) -> Array:
        """Torque limits, or a stand-in where they are unknown, (n,) [N·m]."""
        limit = self.robot.torque_limit
        return np.where(np.isfinite(limit), limit, 30.0 * self._scale)

    def reset(self) -> None:
        shape = (self.trials, self.robot.n)
        self.contact = np.zeros(self.trials, dtype=bool)
        """(trials,) whether something touches the robot now."""
        self._touched = np.zeros(self.trials)
        self._calm = np.zeros(self.trials)
        self._external = np.zeros(shape)
        self._external_rate = np.zeros(shape)
        self._share = np.ones((self.trials, 1))
        self._waiting = Waiting(DELAY, self.trials, self.robot.n, self.model.size)
        super().reset()

    def external_torque(self, time: float) -> Array:
        """External torque on the joints at a time, (trials, n) [N·m]; zero where nothing touches."""
        a, age = self.belief.arrays, max(time - self.belief.time, 0.0)
        return a["external"] + a["external_rate"] * self._ahead(age)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        a = self.belief.arrays
        if not a["contact"].any():
            return super().correct(state, nominal_torque)
        q, qd, inverse = state.position, state.velocity, self._tick_inverse
        external = a["share"] * self.external_torque(state.time)
        ideal = inverse.body.forward_dynamics(q, qd, nominal_torque + external)
        return nominal_torque + a["trust"] * (inverse(a, q, qd, ideal, external) - nominal_torque)

    def _ahead(self, age: float) -> float:
        """Time by which the external torque is extrapolated: from the window's middle to now [s]."""
        return min(0.5 * self._samples * self.timestep + age, LEAD)

    def _limit_share(self, external: Array) -> None:
        """How much of the external torque is answered: at most `authority` times it, as shares of the torque limits.

        Where the ideal robot is far lighter than the real one, yielding as it would takes many times the contact's own
        torque, and the estimate's lag would feed back.
        """
        q, qd, _ = self.history.last(1)[:, 0]
        body, inverse, a = self._inverse.body, self._inverse, self._estimate
        pushed = body.forward_dynamics(q, qd, body.bias(q, qd) + external)
        change = inverse(a, q, qd, pushed, external) - inverse(a, q, qd, np.zeros_like(qd))
        size = np.linalg.norm(change / self._strength, axis=-1)
        room = self.authority * np.linalg.norm(external / self._strength, axis=-1)
        self._share = np.minimum(1.0, room / np.maximum(size, 1e-9))[:, None]

    def _screen(self, equation: Equation, innovation: Array, spread: Array) -> None:
        step = self._step
        distance = self._distance(innovation, spread, equation.noise_factor)
        self._calm = np.where(distance < CLEAR, self._calm + step, 0.0)
        self.contact = np.where(self.contact, self._calm < CALM, distance > SUSPECT) & equation.accepted
        self._touched = np.where(self.contact, self._touched + step, 0.0)
        self._reopen(self._touched > LONGEST)
        self._waiting.refuse(self.contact)
        equation.accepted &= ~self.contact
        self._track(self._disturbance.torque - innovation)
        if self.contact.any():
            self._limit_share(self._external + self._external_rate * self._ahead(0.0))
        self.health[:] = np.where(self.contact, int(Health.SURPRISED), 0)

    def _released(self, equation: Equation) -> Equation | None:
        return self._waiting.exchange(equation)

    def _distance(self, innovation: Array, spread: Array, factor: float) -> Array:
        """Squared Mahalanobis distance of innovations, (trials,)."""
        covariance = np.matmul(np.swapaxes(spread, -1, -2), spread)
        index = np.arange(innovation.shape[-1])
        covariance[:, index, index] += self._noise * max(1.0, factor) + self._disturbance.total
        return np.sum(innovation * np.linalg.solve(covariance, innovation[..., None])[..., 0], axis=-1)

    def _reopen(self, late: Array) -> None:
        """What never ends is no contact: give the estimate its prior's doubt back and learn it."""
        if np.any(late):
            self._filter.root[late] = np.eye(self.model.size)
            self.contact &= ~late
            self._touched[late] = 0.0

    def _track(self, external: Array) -> None:
        """Follow the external torque and its rate while there is contact."""
        step = self._step
        on = self.contact[:, None]
        ahead = self._external + step * self._external_rate
        error = external - ahead
        self._external = np.where(on, ahead + 0.8 * error, 0.0)
        self._external_rate = np.where(on, self._external_rate + 0.3 * error / step, 0.0)

    def _believe(self) -> Belief:
        return Belief.of(
            type(self).__name__,
            self.history.time,
            **self._estimate,
            contact=self.contact.copy(),
            external=self._external.copy(),
            external_rate=self._external_rate.copy(),
            share=self._share.copy(),
        )
