"""Inverse-dynamics models: what torque a motion takes, by whatever means they know it."""

from __future__ import annotations

from typing import Protocol

from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array


class InverseModel(Protocol):
    """A rigid body, a robot's parameters, a network: anything that knows the torque of a motion."""

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The command for an acceleration at a state, (..., n) [N·m]."""
        ...


class ParametricModel:
    """The inverse dynamics of a robot's parameters: links, payload, rotors, friction, springs and drive.

    Args:
        robot: the tree.
        parameters: default: all that the robot's card says, friction and drive included.
    """

    def __init__(self, robot: Robot, parameters: Parameters | None = None):
        self.parameters = Parameters.of_robot(robot) if parameters is None else parameters
        self._body = RigidBody(robot)

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """The command for an acceleration at a state, (..., n) [N·m]."""
        return inverse_torque_command(self._body, self.parameters, q, qd, qdd)
