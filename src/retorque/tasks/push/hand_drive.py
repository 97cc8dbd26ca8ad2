"""What a learnt pushing policy sees and does: hand and goal from the box's point of view, and the hand's target."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.tasks.push.box_task import HALF, planar, wrapped
from retorque.tasks.push.push_planner import HEIGHT
from retorque.tasks.push.pushes import TIP
from retorque.work.array import Array

DECISION = 0.1
"""Time between two decisions [s]."""
FASTEST = 0.15
"""Velocity of the hand's target along the table at an action of one [m/s]."""
LIFT, LIFTING = 0.10, 0.3
"""Height of the hand's target above `HEIGHT` at an action of one [m], and the fastest that it changes [m/s]."""
LEASH = 0.12
"""The hand's target stays this close to the hand along the table [m]."""
PLACES = np.array([[0.28, 0.80], [-0.40, 0.40]])
"""Where the hand's target may be along the table [m]."""
ACTIONS, OBSERVATIONS, SENSED = 3, 25, 23
"""Numbers of an action, of an observation, and of what the history holds of a decision."""


class HandDrive:
    """Targets of the hands of a batch, moved by actions (trials, 3) within -1 and 1.

    The first two numbers are a velocity along the table, in the world's axes; the third is the height, by its cube, so
    that a learner that tries small things keeps pushing.

    Args:
        hand: where the hands are (trials, 3) [m].
        rotation: of the hands throughout (3, 3).
    """

    def __init__(self, hand: Array, rotation: Array):
        self.rotation = np.broadcast_to(rotation, (len(hand), 3, 3))
        self._from, self.target = hand.copy(), hand.copy()
        self.action = np.zeros((len(hand), ACTIONS))
        """(trials, 3) the last one."""
        self._told = 0.0

    def restart(self, which: Array, hand: Array) -> None:
        """Begin anew in some trials (trials,) of bool, from where their hands are (trials, 3) [m]."""
        self._from[which], self.target[which], self.action[which] = hand[which], hand[which], 0.0

    def tell(self, time: float, action: Array, hand: Array) -> None:
        """A decision; one that is not finite counts as zero.

        Args:
            time: now [s].
            action: (trials, 3).
            hand: where the hands are (trials, 3) [m].
        """
        action = np.clip(np.nan_to_num(action, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)
        self._from, self._told, self.action = self.target.copy(), time, action
        along = self._from[:, :2] + DECISION * FASTEST * action[:, :2]
        along = np.clip(along, hand[:, :2] - LEASH, hand[:, :2] + LEASH)
        self.target[:, :2] = np.clip(along, PLACES[:, 0], PLACES[:, 1])
        climb = HEIGHT + LIFT * action[:, 2] ** 3 - self._from[:, 2]
        self.target[:, 2] = self._from[:, 2] + np.clip(climb, -DECISION * LIFTING, DECISION * LIFTING)

    def at(self, time: float) -> PoseAction:
        """Where the hands should be now: on the way from the last target to the next."""
        share = min(max((time - self._told) / DECISION, 0.0), 1.0)
        way = self.target - self._from
        velocity = way / DECISION if share < 1.0 else np.zeros_like(way)
        return PoseAction(self._from + share * way, self.rotation, velocity, np.zeros_like(way))


class BoxView:
    """The box's frame, mirrored so that the goal lies ahead and to the left: four pushes that are alike look alike.

    Args:
        box: poses and twists (trials, 13).
        goal: (trials, 3) x, y [m] and yaw [rad].
        any_yaw: whether only the place counts; the goal's yaw is then not looked at.
    """

    def __init__(self, box: Array, goal: Array, any_yaw: bool = False):
        self.box, self._goal = planar(box), goal
        self._twist = box[:, 7:13]
        cos, sin = np.cos(self.box[:, 2]), np.sin(self.box[:, 2])
        axes = np.stack([np.stack([cos, sin], axis=-1), np.stack([-sin, cos], axis=-1)], axis=1)
        towards = np.matmul(axes, (goal[:, :2] - self.box[:, :2])[..., None])[..., 0]
        side = np.where(towards < 0.0, -1.0, 1.0)
        self.axes = side[..., None] * axes
        """(trials, 2, 2) from the world's axes to the view's."""
        self._towards = np.abs(towards)
        self._handed = side[:, 0] * side[:, 1]
        self.turn = np.zeros(len(goal)) if any_yaw else wrapped(goal[:, 2] - self.box[:, 2])
        """(trials,) from the box's yaw to the goal's [rad]."""

    def to_view(self, vector: Array) -> Array:
        """World vectors (trials, 2 or 3) in the view; a height stays."""
        turned = np.matmul(self.axes, vector[:, :2, None])[..., 0]
        return np.concatenate([turned, vector[:, 2:]], axis=-1)

    def to_world(self, vector: Array) -> Array:
        """The inverse of `to_view`."""
        turned = np.matmul(np.swapaxes(self.axes, -1, -2), vector[:, :2, None])[..., 0]
        return np.concatenate([turned, vector[:, 2:]], axis=-1)

    def observe(self, hand: Array, velocity: Array, drive: HandDrive) -> Array:
        """What the policy sees, (trials, OBSERVATIONS), each number around one.

        Args:
            hand: (trials, 3) [m].
            velocity: of the hand (trials, 3) [m/s].
            drive: where the hand is told to be.
        """
        place = np.column_stack([self.box[:, :2], np.full(len(hand), HEIGHT)])
        seen = [
            self.to_view(hand - place) / 0.1,
            self._towards / 0.1,
            (self._handed * self.turn)[:, None] / 0.5,
            np.cos(self.turn)[:, None],
            self.to_view(drive.target - hand) / 0.05,
            self.to_view(velocity) / 0.2,
            self.to_view(self._twist[:, :2]) / 0.1,
            (self._handed * self._twist[:, 5])[:, None],
            self.to_view(drive.action),
            self.axes.reshape(-1, 4),
            (self.box[:, :2] - [0.53, 0.0]) / 0.1,
        ]
        return np.clip(np.nan_to_num(np.concatenate(seen, axis=-1), nan=0.0), -5.0, 5.0)


def sense(position: Array, velocity: Array, hand: Array, drive: HandDrive) -> Array:
    """What RMA's history holds of a decision, (trials, SENSED): joints, the hand's lag, and the last action.

    Args:
        position: (trials, 7) [rad].
        velocity: (trials, 7) [rad/s].
        hand: (trials, 3) [m].
        drive: where the hand is told to be, and the last action.
    """
    parts = [position, velocity, (drive.target - hand) / 0.05, hand, drive.action]
    return np.clip(np.concatenate(parts, axis=-1), -5.0, 5.0)


def approach_place(box: Array, goal: Array, clearance: float = 0.03) -> Array:
    """Where the fingertips come down, (trials, 2) [m]: beside the box, on the side away from the goal.

    Args:
        box: (trials, 3) x, y [m] and yaw [rad].
        goal: (trials, 3).
        clearance: between fingertips and box [m].
    """
    away = box[:, :2] - goal[:, :2]
    away = away / np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), 1e-9)
    cos, sin = np.cos(box[:, 2]), np.sin(box[:, 2])
    own = np.stack([cos * away[:, 0] + sin * away[:, 1], -sin * away[:, 0] + cos * away[:, 1]], axis=-1)
    room = np.array(HALF[:2]) + TIP + clearance
    reach = np.min(room / np.maximum(np.abs(own), 1e-9), axis=-1)  # along the ray to the grown rectangle
    return box[:, :2] + reach[:, None] * away
