"""The controller of a plan: its input, and its gains times how far the robot is from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import Action
from retorque.control.controller import Controller
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


@dataclass(slots=True)
class PlanAction(Action):
    """A row of a plan, and where the robot is believed to be."""

    input: Array
    """(inputs,) planned [N·m]."""
    gain: Array
    """(inputs, 2 n)"""
    planned: Array
    """(2 n,) state that the row is for."""
    estimate: Array
    """(2 n,) state now."""


class PlanFeedback(Controller[PlanAction]):
    """u = planned input + gain (estimate - planned state), within limits; whatever is not finite becomes rest.

    Args:
        robot: joints of torque limit zero get none.
    """

    def __init__(self, robot: Robot):
        self._actuated = np.flatnonzero(robot.torque_limit > 0.0)
        self._limit = robot.torque_limit[self._actuated]
        self._torque = np.zeros(robot.n)

    def command(self, state: State, action: PlanAction) -> Command:
        u = action.input + action.gain @ (action.estimate - action.planned)
        if not np.isfinite(u).all():
            u = np.where(np.isfinite(action.input), action.input, 0.0)
        torque = np.zeros_like(self._torque)
        torque[self._actuated] = np.minimum(np.maximum(u, -self._limit), self._limit)
        return Command(torque=torque)
