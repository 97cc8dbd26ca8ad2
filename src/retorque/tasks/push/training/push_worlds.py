"""Where a pushing policy tries its pushes: on the batch engine, with robots that may differ, or elsewhere."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import OperationalSpace
from retorque.loop.loop import Loop
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_task import HALF, BoxTask, box_pose, planar
from retorque.tasks.push.legs import Legs
from retorque.tasks.push.push_choice import sense
from retorque.tasks.push.push_planner import HEIGHT, SPEED, WAIT
from retorque.tasks.push.pushes import Pushes, change_of
from retorque.tasks.push.training.collect import OnePush
from retorque.work.array import Array

TICK, SUBSTEPS = 10e-3, 2
"""Of the engine while it learns: coarser than the bench's 1 kHz [s]."""
HOLD = 0.4
"""A hand that sags has sunk after this [s]."""


class PushWorld(Protocol):
    """Does one push in every trial."""

    trials: int

    def push(self, box: Array, pushes: Pushes, shift: Array) -> tuple[Array, Array]:
        """Boxes (trials, 3) after a push each, its hand shifted (trials, 3) [m]; what is sensed (trials, SENSED)."""
        ...


class SimulatedPushes:
    """Robots on the engine: each begins with its fingertips beside the box, and pushes.

    Args:
        robot: the ideal robot.
        robots: what is hidden about each.
        hold: how long hands stay beside the box first, so that those that sag have sunk [s].
    """

    def __init__(self, robot: Robot, robots: Robots, *, hold: float = 0.0):
        self.trials, self._hold = robots.parameters.trials[0], hold
        self._body, self._frame = RigidBody(robot), robot.end_effector
        self._rotation = self._body.frame_pose(self._frame, robot.home)[1]
        self._turns = np.broadcast_to(self._rotation, (self.trials, 3, 3))
        self.target = Target(
            robot,
            robots.parameters,
            scene=BoxTask(robot, 1, 0).scene(),
            sensors=robots.sensors,
            timestep=TICK,
            substeps=SUBSTEPS,
            seed=robots.seed,
            threads=1,
        )

    def push(self, box: Array, pushes: Pushes, shift: Array) -> tuple[Array, Array]:
        low, end = (np.column_stack([p, np.full(self.trials, HEIGHT)]) + shift for p in pushes.ends(box))
        after, hand, joints = self.along(box, low, end)
        return after, sense(hand - end, change_of(box, after), pushes, shift, joints)

    def along(self, box: Array, first: Array, last: Array) -> tuple[Array, Array, Array]:
        """Push boxes (trials, 3) from and to points (trials, 3) [m].

        Returns:
            The boxes then, not a number where one fell; where the hands are (trials, 3) [m]; their joints [rad].
        """
        self.show(box, first)
        legs = Legs(self.trials, self._rotation)
        along = (np.linalg.norm(last - first, axis=-1) + 0.01) / SPEED
        times = np.stack([np.full(self.trials, self._hold + 1e-3), along, np.full(self.trials, WAIT)], axis=1)
        legs.begin(np.ones(self.trials, dtype=bool), 0.0, np.stack([first, first, last, last], axis=1), times)
        loop = Loop(self.target, OnePush(legs), OperationalSpace(self.target.robot))
        for _ in range(round(float(times.sum(axis=1).max()) / TICK)):
            state = loop.tick().state
        assert self.target.objects is not None
        thing = self.target.objects[:, 0]
        x, y = thing[:, 4], thing[:, 5]
        stands = (np.abs(thing[:, 2] - HALF[2]) < 0.02) & (1.0 - 2.0 * (x * x + y * y) > 0.95) & ~self.target.diverged
        hand, _ = self._body.frame_pose(self._frame, state.position)
        return np.where(stands[:, None], planar(thing), np.nan), hand, state.position

    def show(self, box: Array, hand: Array) -> None:
        """Put boxes (trials, 3) and hands (trials, 3) somewhere, for whoever looks."""
        self.target.reset(self.joints_at(hand))
        self.target.place("box", box_pose(box))

    def hand_at(self, joints: Array) -> tuple[Array, Array]:
        """Position (..., 3) [m] and rotation (..., 3, 3) of the hand."""
        return self._body.frame_pose(self._frame, joints)

    def joints_at(self, hand: Array) -> Array:
        """(trials, n) joints with hands at (trials, 3), turned as at home [rad]."""
        return solve(self._body, self._frame, hand, self._turns, self.target.robot.home, iterations=25)[0]
