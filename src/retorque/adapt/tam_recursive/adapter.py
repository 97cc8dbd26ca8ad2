"""The recursive Bayesian adapter with a learned module on top, which says what linear physics cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.adapt.recursive.equation import Equation
from retorque.adapt.recursive.recursive_contact import LONGEST, RecursiveContact
from retorque.adapt.tam.context import torque_unit
from retorque.adapt.tam_recursive.residual_network import ResidualNetwork
from retorque.adapt.tam_recursive.residual_weights import ON_BOARD, load_weights
from retorque.adapt.tam_recursive.residuals import Residuals
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

MOST_OWN = 3.0
"""Largest own torque beyond the estimate [units]."""
MOST_EXTERNAL = 0.5
"""Largest external torque, as a share of the torque limit."""
PUSHED = 0.25
"""Root mean square of the external torques above which something may touch the robot [units]."""
CLEARLY = 4.0
"""How many times the own torques they must be for that: backlash looks like small pushes now and then."""
SURPRISING = 10.0
"""Squared Mahalanobis distance of an innovation below which the estimate may still be what is wrong: it learns on."""
MEMORY = 10
"""Answers of the network that an equation's samples reach back to."""


class TamRecursive(RecursiveContact):
    """Learns as `Recursive` does; a network reads the residuals of its estimate every 5 ms.

    The network was trained in simulation with contact, stick-slip, ripple, flexible joints, backlash and delay. It says
    how much of the unexplained torque is a push from outside (the robot yields to it as the ideal one would, and learns
    nothing meanwhile) and how much is the robot's own (it is cancelled): what linear physics cannot say.

    Args:
        weights: a file of weights; default: the ones on board.
    """

    periods = (1e-3, 1e-3)
    on_board = ON_BOARD
    authority = 3.0
    remembered: tuple[str, ...] = (
        *RecursiveContact.remembered,
        "residuals",
        "_learnt_at",
        "_pushed",
        "_own",
        "_uncertain",
        "_push_sizes",
        "_touching",
        "answers",
    )

    def __init__(
        self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, weights: Path | None = None
    ):
        tensors, _ = load_weights(weights or self.on_board)
        self.unit = torque_unit(robot)
        self._network = ResidualNetwork(tensors)
        super().__init__(robot, trials, timestep, seed)
        self.learn_every = 1

    def reset(self) -> None:
        self.residuals = Residuals(self.unit, self.history)
        self._learnt_at = -np.inf
        shape = (self.trials, self.robot.n)
        self._pushed, self._own = np.zeros(shape), np.zeros(shape)
        self._uncertain = self.unit * np.ones(shape)
        self._push_sizes = np.zeros((MEMORY, self.trials))
        self._touching = np.zeros(self.trials, dtype=bool)
        self.answers = 0
        """How often the network has answered since the start."""
        super().reset()

    def learn(self) -> Belief | None:
        belief = None
        if self.history.total - self._learnt_at >= self._stride:
            self._learnt_at = self.history.total
            belief = super().learn()
        if self.residuals.due and self.residuals.close(self._explained):
            self.taps = self.residuals.taps(self._disturbance.torque)
            doubts = np.stack([self._uncertain, np.sqrt(self._disturbance.lasting), np.sqrt(self._disturbance.total)])
            self.features = self.residuals.features(self.taps, doubts)
            external, own = self._network(self.features, self.taps)
            sound = self.residuals.sound[:, None]
            self._answer(external * self.unit * sound, own * self.unit * sound)
            self.answers += 1
            belief = self._believe()
        return belief

    def needed(self, position: Array, velocity: Array, acceleration: Array, external: Array) -> Array:
        """The command that the estimate alone would need for a motion under an external torque, (trials, n) [N·m]."""
        return self._inverse(self._estimate, position, velocity, acceleration, external)

    def _explained(self, q: Array, qd: Array, qdd: Array, given: Array) -> Array:
        """The command that the estimate alone would need for a motion, nothing pushing, (trials, n) [N·m]."""
        return self._inverse(self._estimate, q, qd, qdd)

    def _refresh(self) -> None:
        super()._refresh()
        # What persists is the network's to judge: push or own.
        self._estimate["offset"] = self._estimate["offset"] - self._disturbance.torque

    def _released(self, equation: Equation) -> Equation | None:
        return equation  # the network sees a push as soon as an equation does

    def _answer(self, external: Array, own: Array) -> None:
        """Bound what the network says, and take it over; what is not finite is nothing."""
        most = MOST_EXTERNAL * self._strength
        self._pushed = np.clip(np.nan_to_num(external), -most, most)
        self._own = np.clip(np.nan_to_num(own), -MOST_OWN * self.unit, MOST_OWN * self.unit)
        push, own_size = (np.sqrt(np.mean((x / self.unit) ** 2, axis=-1)) for x in (self._pushed, self._own))
        self._push_sizes[self.answers % MEMORY] = push
        begins = (push > PUSHED) & (push > CLEARLY * own_size)
        self._touching = begins | (self._touching & (self._push_sizes.max(axis=0) > PUSHED))
        self._limit_share(self._pushed)

    def _screen(self, equation: Equation, innovation: Array, spread: Array) -> None:
        self._uncertain = np.linalg.norm(spread, axis=1)
        self._touched = np.where(self._touching, self._touched + self._step, 0.0)
        self.contact = self._touching & (self._touched <= LONGEST)  # what lasts longer is the robot's own, and learnt
        if self.contact.any():
            self.contact &= self._distance(innovation, spread, equation.noise_factor) > SURPRISING
        equation.accepted &= ~self.contact
        self.health[:] = np.where(self.contact, int(Health.SURPRISED), 0)

    def external_torque(self, time: float) -> Array:
        return self.belief.arrays["external"]

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd, inverse, a = state.position, state.velocity, self._tick_inverse, self.belief.arrays
        external = a["share"] * a["external"]
        ideal = inverse.body.forward_dynamics(q, qd, nominal_torque + external)
        found = inverse(a, q, qd, ideal, external) + a["own"]
        return nominal_torque + a["trust"] * (found - nominal_torque)

    def _believe(self) -> Belief:
        return Belief.of(
            type(self).__name__,
            self.history.time,
            **self._estimate,
            external=self._pushed.copy(),
            own=self._own.copy(),
            share=self._share.copy(),
        )
