"""Many boxes pushed at once, each begun anew when it is over: what a pushing policy learns in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import PoseAction
from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import OperationalSpace
from retorque.loop.loop import Loop
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_task import HALF, NEAR, TURNED, BoxTask, box_pose, errors, planar, wrapped
from retorque.tasks.push.hand_drive import DECISION, PLACES, SENSED, BoxView, HandDrive, approach_place, sense
from retorque.tasks.push.push_network import HISTORY
from retorque.tasks.push.push_planner import HEIGHT, WEIGHT
from retorque.tasks.push.pushes import TIP
from retorque.work.array import Array

TICK, SUBSTEPS = 10e-3, 2
"""Of the training's robots: coarser than the bench's, which runs at 1 kHz [s]."""
LONGEST = 110
"""Decisions of an episode."""
MARGIN = 0.8
"""Share of the task's tolerance at which an episode ends well."""
AROUND, ASIDE = 0.15, 0.8
"""Metres that a radian round the box counts as, and the angle to either side from which a push goes well [rad]."""
LOST = 0.3
"""A box this far from its goal is given up [m]."""
POOL = 4096
"""Starts and goals to draw from."""


@dataclass(frozen=True, kw_only=True)
class PushReward:
    """What a decision is worth."""

    nearer: float = 20.0
    """A metre nearer to the goal; a radian of turn counts as 0.11 m."""
    touching: float = 4.0
    """A metre nearer to the box, on the side from which it is pushed to its goal; half way round counts as 0.35 m."""
    arrived: float = 5.0
    """Once, at the goal."""
    lost: float = -2.0
    """Once, where the box is given up."""
    time: float = -0.02
    """Every decision."""
    change: float = -0.01
    """Square of an action's change."""
    lifted: float = -1.0
    """A metre that the hand's target is above or below pushing height, every decision."""


class _Driven:
    """The policy that a training is: the hands where they were told to be."""

    period = 0.0

    def __init__(self, drive: HandDrive):
        self.drive = drive

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> PoseAction:
        return self.drive.at(state.time)


class PushEnv:
    """A batch of pushing robots.

    Args:
        robot: the arm.
        robots: what is hidden about each.
        seed: of starts and goals, at least 1000 where anything is tuned.
    """

    def __init__(self, robot: Robot, robots: Robots, seed: int, reward: PushReward | None = None):
        self.reward = reward or PushReward()
        self.any_yaw, self.yaw_share = False, 1.0
        """Whether only the place counts, and the share of the task's turns that goals have."""
        self._rng = np.random.default_rng(seed)
        self._pool = BoxTask(robot, POOL, seed)
        self.trials = robots.parameters.trials[0]
        self._body, self._frame = RigidBody(robot), robot.end_effector
        self._rotation = self._body.frame_pose(self._frame, robot.home)[1]
        self._places, self._joints = _reachable(self._body, self._rotation)
        self.target = Target(
            robot,
            robots.parameters,
            scene=self._pool.scene(),
            sensors=robots.sensors,
            timestep=TICK,
            substeps=SUBSTEPS,
            seed=robots.seed,
            threads=1,
        )
        self.goal = np.zeros((self.trials, 3))
        self._age = np.zeros(self.trials, dtype=int)
        self.restart()

    def restart(self, seed: int | None = None) -> None:
        """Every episode anew, from a seed of its own where one is given."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.target.reset(np.broadcast_to(self._joints[0], (self.trials, self._joints.shape[1])))
        self._drive = HandDrive(np.zeros((self.trials, 3)), self._rotation)
        self.history = np.zeros((self.trials, HISTORY, SENSED))
        """(trials, HISTORY, SENSED) oldest first."""
        self._begin(np.ones(self.trials, dtype=bool))
        self._loop = Loop(self.target, _Driven(self._drive), OperationalSpace(self.target.robot))
        self._age = self._rng.integers(0, LONGEST, self.trials)  # not all over at once
        state = self.target.read()
        self._look(state)
        self._remember(state)

    def observe(self) -> Array:
        """(trials, OBSERVATIONS)"""
        return self._view.observe(self._hand, self._velocity, self._drive)

    def step(self, action: Array) -> tuple[Array, Array, Array, Array]:
        """A decision in the view's axes: reward, over for good, over by time, arrived, (trials,) each."""
        before, near, last = self._cost(), self._gap(), self._drive.action
        self._drive.tell(self.target.time, self._view.to_world(action), self._hand)
        for _ in range(round(DECISION / TICK)):
            state = self._loop.tick().state
        self._age += 1
        self._look(state)
        self._remember(state)
        r = self.reward
        distance, turn = errors(self._view.box, self.goal)
        arrived = (distance < MARGIN * NEAR) & (self.any_yaw | (turn < MARGIN * TURNED))
        lost = (distance > LOST) | ~self._upright() | self.target.diverged
        change = np.sum((self._drive.action - last) ** 2, axis=-1)
        gained = r.nearer * (before - self._cost()) + r.touching * (near - self._gap()) + r.time + r.change * change
        gained = gained + r.lifted * np.abs(self._drive.target[:, 2] - HEIGHT)
        gained = np.where(lost, r.lost, gained + r.arrived * arrived)
        return np.nan_to_num(gained), arrived | lost, self._age >= LONGEST, arrived

    def begin(self, which: Array) -> None:
        """New episodes in some trials, (trials,) of bool."""
        if not which.any():
            return
        if self.target.diverged.any():
            self.restart()
            return
        self._begin(which)
        position, velocity = np.array(self.target.position), np.array(self.target.velocity)
        state = State(self.target.time, position, velocity, np.zeros_like(position), objects=self.target.objects)
        self._look(state)
        self.history[which, -1] = sense(position, velocity, self._hand, self._drive)[which]

    def _begin(self, which: Array) -> None:
        count = int(which.sum())
        rows = self._rng.integers(0, POOL, count)
        start, goal = self._pool.start[rows], self._pool.goal[rows].copy()
        goal[:, 2] = start[:, 2] + self.yaw_share * (goal[:, 2] - start[:, 2])
        place = approach_place(start, goal) + 0.015 * self._rng.standard_normal((count, 2))
        anywhere = self._rng.uniform(size=count) < 0.3
        angle = self._rng.uniform(-np.pi, np.pi, count)
        around = start[:, :2] + 0.17 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        place[anywhere] = around[anywhere]
        hand = self._nearest(place, start)
        assert self.target.objects is not None
        box = self.target.objects[:, 0].copy()
        box[which] = np.concatenate([box_pose(start), np.zeros((count, 6))], axis=-1)
        self.target.place("box", box[:, :7], box[:, 7:])
        self.target.position[which], self.target.velocity[which] = self._joints[hand], 0.0
        self.goal[which], self._age[which], self.history[which] = goal, 0, 0.0
        self._drive.restart(which, self._body.frame_pose(self._frame, np.array(self.target.position))[0])

    def _nearest(self, place: Array, box: Array) -> Array:
        """The numbers of reachable places that are nearest to these and clear of the boxes."""
        away = self._places[None] - box[:, None, :2]
        cos, sin = np.cos(box[:, None, 2]), np.sin(box[:, None, 2])
        own = np.stack([cos * away[..., 0] + sin * away[..., 1], -sin * away[..., 0] + cos * away[..., 1]], axis=-1)
        clear = np.any(np.abs(own) > np.array(HALF[:2]) + TIP + 0.012, axis=-1)
        distance = np.linalg.norm(self._places[None] - place[:, None], axis=-1)
        return np.argmin(np.where(clear, distance, np.inf), axis=-1)

    def _look(self, state: State) -> None:
        assert state.objects is not None
        self._hand, _ = self._body.frame_pose(self._frame, state.position)
        jacobian = self._body.jacobian(self._frame, state.position)
        self._velocity = np.matmul(jacobian[:, :3], state.velocity[..., None])[..., 0]
        self._view = BoxView(state.objects[:, 0], self.goal, self.any_yaw)
        self._box = state.objects[:, 0]

    def _remember(self, state: State) -> None:
        self.history = np.roll(self.history, -1, axis=1)
        self.history[:, -1] = sense(state.position, state.velocity, self._hand, self._drive)

    def _upright(self) -> Array:
        """(trials,) whether the box still stands on the table."""
        x, y = self._box[:, 4], self._box[:, 5]
        return (np.abs(self._box[:, 2] - HALF[2]) < 0.03) & (1.0 - 2.0 * (x * x + y * y) > 0.9)

    def _cost(self) -> Array:
        """(trials,) how far the box is from its goal [m]."""
        distance, turn = errors(planar(self._box), self.goal)
        return np.minimum(distance + (0.0 if self.any_yaw else WEIGHT) * np.minimum(turn, np.pi), 1.0)

    def _gap(self) -> Array:
        """(trials,) how far the fingertips are from where they could push: the gap, and the way round the box [m]."""
        away = self._hand[:, :2] - self._view.box[:, :2]
        outside = np.maximum(np.abs(self._view.to_view(away)) - np.array(HALF[:2]) - TIP, 0.0)
        behind = self._view.box[:, :2] - self.goal[:, :2]
        apart = wrapped(np.arctan2(away[:, 1], away[:, 0]) - np.arctan2(behind[:, 1], behind[:, 0]))
        round_it = AROUND * np.maximum(np.abs(apart) - ASIDE, 0.0)
        return np.nan_to_num(np.linalg.norm(outside, axis=-1) + round_it)


def _reachable(body: RigidBody, rotation: Array) -> tuple[Array, Array]:
    """Places (k, 2) [m] at pushing height, and the joints (k, n) [rad] that bring the fingertips there."""
    x, y = np.meshgrid(*(np.arange(low, high, 0.02) for low, high in PLACES))
    places = np.stack([x.ravel(), y.ravel()], axis=-1)
    points = np.column_stack([places, np.full(len(places), HEIGHT)])
    turns = np.broadcast_to(rotation, (len(places), 3, 3))
    joints, left = solve(body, body.robot.end_effector, points, turns, body.robot.home)
    return places[left < 2e-3], joints[left < 2e-3]
