"""A robot in its scene, simulated or real."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class Plant(Protocol):
    """One robot, or a batch of them: it reports states and takes commands.

    Joint order, rate, units and what gravity means are settled where a plant is made: torques include gravity.
    """

    timestep: float
    """Control period [s]."""
    takes: Literal["torque", "position"]
    """What its joints can be told."""

    def read(self) -> State:
        """The newest report; called once a tick."""

    def write(self, command: Command) -> None:
        """Tell the joints; a simulation moves on by one control period."""


@runtime_checkable
class Simulation(Plant, Protocol):
    """A plant that knows the truth."""

    position: Array
    """(..., n) true joint positions [rad]."""
    velocity: Array
    """(..., n) true joint velocities [rad/s]."""

    def push(self, torque: Array | float) -> None:
        """External torque on the joints from now on, (..., n) [N·m]."""


class GravityCompensated:
    """A plant whose robot adds gravity compensation of its own, behind the convention that torques include gravity.

    Args:
        plant: the robot's interface, whose torques are without gravity (a Franka, say).
        robot: its model, whose gravity torque the robot adds by itself.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, plant: Plant, robot: Robot):
        self.plant, self.timestep = plant, plant.timestep
        self._body = RigidBody(robot)

    def read(self) -> State:
        """The report, with the gravity torque that the robot added."""
        state = self.plant.read()
        self._gravity = self._body.gravity(state.position)
        state.torque = state.torque + self._gravity
        return state

    def write(self, command: Command) -> None:
        """Send the torque without the gravity torque that the robot adds."""
        assert command.torque is not None
        self.plant.write(Command(torque=command.torque - self._gravity, gripper=command.gripper))


def plant_for(robot: Robot, plant: Plant) -> Plant:
    """The plant behind the convention that torques include gravity: the card says whether the hardware adds it."""
    return GravityCompensated(plant, robot) if robot.hardware_adds_gravity else plant
