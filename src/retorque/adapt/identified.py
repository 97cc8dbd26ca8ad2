"""The identified model, fed forward: what was learnt from a log before, and nothing since."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.loop.adapter import Adapter
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class IdentifiedSettings:
    """Settings of the identified adapter."""

    card: str = ""
    """Path of the card that `retorque identify --export` wrote; default: the ideal robot's own card."""


class Identified(Adapter):
    """τ = Φ_ξ(q, q̇, F₀(q, q̇, τ⁰)), with ξ as the card has it (C.4, C.5); nothing is learnt.

    The robot that it is made for stays the ideal one: what should move as. The card says how the real one differs, in
    links, rotors, friction and drive. Friction that depends on the path is taken at its velocity alone.
    """

    settings_type = IdentifiedSettings

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: IdentifiedSettings | None = None,
        card: Robot | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings = settings or IdentifiedSettings()
        self.card = identified_card(robot, self.settings.card) if card is None else card
        self.parameters = Parameters.of_robot(self.card, trials)
        self._body = RigidBody(robot)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd = state.position, state.velocity
        ideal = self._body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self._body, self.parameters, q, qd, ideal, timestep=self.timestep)


def identified_card(robot: Robot, path: str) -> Robot:
    """The identified card of a robot: another file's, which must have the same joints, or its own."""
    card = load(path) if path else robot
    if card.joint_names != robot.joint_names:
        raise RetorqueError(f"the card '{path}' has other joints than robot '{robot.name}'; give this robot's own")
    if card.friction is None and card.drive is None and card.uncertainty is None:
        raise RetorqueError(
            f"the card of robot '{card.name}' was not identified: it has neither friction nor drive; write one with "
            "retorque identify --export, and name it in the adapter's setting 'card'"
        )
    return card
