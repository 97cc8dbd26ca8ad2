"""The true parameters, inverted: the floor that any adapter can hope for without knowing contact."""

from __future__ import annotations

from collections.abc import Callable

from retorque.loop.adapter import Adapter
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class Oracle(Adapter):
    """τ = Φ_ξ(q, q̇, F₀(q, q̇, τ⁰)), with the target's own ξ (C.4, C.5).

    Args:
        truth: gives the target's parameters now, (trials, ...).
    """

    def __init__(
        self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, truth: Callable[[], Parameters]
    ):
        super().__init__(robot, trials, timestep, seed)
        self._truth = truth
        self._body = RigidBody(robot)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd = state.position, state.velocity
        ideal = self._body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self._body, self._truth(), q, qd, ideal, timestep=self.timestep)
