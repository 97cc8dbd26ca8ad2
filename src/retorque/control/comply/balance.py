"""Balance of a robot on its feet while its hands press: IMU feedback, feed-forward of the wrench, tipping limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.site_kinematics import DampedLeastSquares
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.state import Base, State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class BalanceSettings:
    """Settings of the stabiliser (appendix B of the paper, and what was missing there)."""

    pitch_gain: float = 10.0
    """Moment at the feet against torso pitch [N·m/rad]."""
    pitch_damping: float = 2.0
    """... against pitch rate [N·m·s/rad]."""
    pitch_integral: float = 20.0
    """... against pitch that stays [N·m/(rad·s)]."""
    most_moment: float = 1.5
    """Largest moment that feedback may ask of the feet [N·m]."""
    roll_gain: float = 20.0
    """Moment of the feet's loads against torso roll [N·m/rad]."""
    roll_damping: float = 1.0
    """... against roll rate [N·m·s/rad]."""
    least_load: float = 0.15
    """Share of the weight that is left on a foot, at least."""
    yaw_gain: float = 0.5
    """Turn of the waist against torso yaw [rad/rad]."""
    yaw_follow: float = 0.0
    """Torso yaw asked for a metre of lateral hand motion [rad/m]."""
    most_yaw: float = 0.25
    """[rad]"""
    filter: float = 0.2
    """Time constant of the felt force that scales the feed-forward [s]."""
    lean: float = 0.8
    """Share of the commanded force's moment that the body carries by leaning forwards."""
    most_lean: float = 0.035
    """[m]"""
    lean_time: float = 0.3
    """Time constant of leaning [s]."""
    tipping_share: float = 0.9
    """Share of the tipping limit that may be commanded."""
    feed_forward: bool = True
    """Whether leg servos are told of the loads to come."""
    feedback: bool = True
    """Whether the IMU is used."""


class Balance:
    """The `Posture` of a standing robot: moments at the feet through all leg joints, by offsets of their servos.

    The ground's moment that holds the robot is shared by both feet; a leg joint's torque is that moment through the
    foot's Jacobian, and its servo is told a target that is off by torque over stiffness. Where the base is comes from
    the IMU's orientation and from feet that do not move.

    Args:
        robot: with a free base.
        feet: frames at the soles.
        sites: frames of the hands.
        stiffness: of the joints' position loops (n,) [N·m/rad].
        sole: half length of a foot [m].
        trials: robots served at once.
        timestep: control period [s].
        settings: gains.
    """

    def __init__(
        self,
        robot: Robot,
        feet: tuple[str, str],
        sites: tuple[str, ...],
        stiffness: Array,
        sole: float,
        trials: int = 1,
        timestep: float = 0.02,
        settings: BalanceSettings | None = None,
    ):
        self.settings, self.robot, self.timestep, self.sole = settings or BalanceSettings(), robot, timestep, sole
        frames = tuple(robot.frame(name) for name in (*feet, *sites))
        self.tree = CompiledTree(robot, frames, trials)
        self.trials = trials
        self._stiffness = np.asarray(stiffness, dtype=float)
        self._legs = self.tree.on_chain[:2].any(axis=0) & ~self.tree.on_chain[2:].any(axis=0)
        names = robot.joint_names
        self._waist = names.index("waist_yaw") if "waist_yaw" in names else -1
        self._mass = np.array([link.mass for link in robot.links])
        self._centre = np.array([link.centre for link in robot.links])
        self._weight = float(self._mass.sum() * -robot.gravity[2])
        self.codes = np.zeros(trials, dtype=np.int64)
        self._planted = np.zeros((trials, 2, 3))
        self._rest, self._contact = np.zeros((trials, robot.n)), np.zeros(trials)
        self._sum, self._felt = np.zeros(trials), np.zeros((trials, len(sites), 3))
        self._orientation = np.zeros((trials, 4))
        soles = frames[:2]
        shared = self.tree.on_chain[:2].all(axis=0)  # a waist between both legs and the base stays out of leaning
        own = self.tree.on_chain[:2] & self._legs & ~shared
        self._legs_to = DampedLeastSquares(robot, soles, own, trials, timestep)
        self._lean, self._soles = np.zeros(trials), np.zeros((trials, 2, 3, 3))
        self._upright = np.zeros((trials, 7))
        self._frozen = np.zeros(trials, dtype=np.int64)
        self._first_hand = np.zeros((trials, 3))
        self.tipping = np.full(trials, np.inf)
        """(trials,) force at the hands that would tip the robot backwards [N]."""

    def reset(self, state: State, q: Array) -> None:
        """Stand here: the feet are where they are now."""
        assert state.base is not None
        self.tree.update(q, np.reshape(state.base.pose, (self.trials, 7)))
        self._planted[:] = self.tree.position[:, :2]
        self._rest[:] = q
        self._soles[:] = self.tree.rotation[:, :2]
        self._upright[:] = np.reshape(state.base.pose, (self.trials, 7))
        self._lean[:] = 0.0
        self._legs_to.reset(q)
        self._sum[:], self._contact[:], self._felt[:] = 0.0, 0.0, 0.0
        self._frozen[:] = 0
        self._first_hand[:] = self.tree.position[:, -1]

    def locate(self, state: State) -> Base | None:
        """Base pose from the IMU's orientation and planted feet; its twist as reported."""
        assert state.base is not None
        pose = np.reshape(state.base.pose, (self.trials, 7)).copy()
        pose[:, :3] = 0.0
        q = np.reshape(state.position, (self.trials, self.robot.n))
        self.tree.update(q, pose)
        pose[:, :3] = np.mean(self._planted - self.tree.position[:, :2], axis=1)
        self.tree.update(q, pose)
        return Base(pose.reshape(state.base.pose.shape), state.base.twist)

    def limit(self, action: ComplianceAction) -> ComplianceAction:
        """Cap what is commanded by the tipping limit: weight x distance to the sole's edge / hand height."""
        self.codes = np.zeros(self.trials, dtype=np.int64)
        if action.wrench is None:
            return action
        middle = np.mean(self._planted, axis=1)
        lever = np.maximum(self.tree.position[:, 2:, 2].mean(axis=1) - middle[:, 2], 0.05)
        behind = self._mass_centre()[:, 0] - (middle[:, 0] - self.sole)
        self.tipping = self._weight * np.maximum(behind, 0.0) / lever
        wrench = np.reshape(
            np.broadcast_to(action.wrench, (self.trials, *np.shape(action.wrench)[-2:])), (self.trials, -1, 6)
        )
        ahead = np.maximum(wrench[..., 0].sum(axis=-1), 0.0)
        allowed = self.settings.tipping_share * self.tipping
        over = ahead > allowed
        if not over.any():
            return action
        self.codes = np.where(over, int(ComplyCode.FORCE), 0)
        share = np.where(over, allowed / np.maximum(ahead, 1e-9), 1.0)
        return replace(action, wrench=wrench * share[:, None, None])

    def feel(self, force: Array) -> None:
        """Take in the forces at the hands (trials, sites, 3) that the estimate holds for true [N]."""
        share = min(1.0, self.timestep / self.settings.filter)
        self._felt += share * (force - self._felt)

    def adjust(self, state: State, action: ComplianceAction, q: Array) -> None:
        """Set the targets of the legs and the waist."""
        assert state.base is not None
        s, tree = self.settings, self.tree
        pose = np.reshape(state.base.pose, (self.trials, 7))
        twist = np.reshape(state.base.twist, (self.trials, 6))
        rate, roll_rate = twist[:, 4], twist[:, 3]
        pitch, yaw = pitch_and_yaw(pose[:, 3:])
        roll = roll_of(pose[:, 3:])
        same = (pose[:, 3:] == self._orientation).all(axis=-1) & (np.abs(rate) > 1e-4)
        self._frozen = np.where(same, self._frozen + 1, 0)
        self._orientation[:] = pose[:, 3:]
        bad = (self._frozen > 5) | ~np.isfinite(pose).all(axis=-1) | ~np.isfinite(rate + roll_rate)
        if bad.any():
            self.codes = self.codes | np.where(bad, int(ComplyCode.IMU), 0)
        fine = ~bad & s.feedback
        pitch, rate, yaw, roll, roll_rate = (np.where(fine, x, 0.0) for x in (pitch, rate, yaw, roll, roll_rate))
        self._sum = np.clip(
            self._sum + s.pitch_integral * pitch * self.timestep, -0.5 * s.most_moment, 0.5 * s.most_moment
        )
        asked = -s.pitch_gain * pitch - s.pitch_damping * rate - self._sum
        moment = np.clip(asked, -s.most_moment, s.most_moment)
        aside = np.clip(-s.roll_gain * roll - s.roll_damping * roll_rate, -s.most_moment, s.most_moment)
        hands = self._felt if s.feed_forward else np.zeros_like(self._felt)
        torque = self._leg_torque(np.stack([aside, moment], axis=-1), hands)
        offset = torque / self._stiffness
        q[:, self._legs] = (self._leaning(action) + offset)[:, self._legs]
        if self._waist >= 0:
            asked_yaw = np.zeros(self.trials)
            if s.yaw_follow:
                hand = np.reshape(
                    np.broadcast_to(action.position, tree.position[:, 2:].shape), tree.position[:, 2:].shape
                )
                asked_yaw = np.clip(s.yaw_follow * (hand[:, -1, 1] - self._first_hand[:, 1]), -s.most_yaw, s.most_yaw)
            # The waist turns the legs against the torso: feet that stand turn the torso the other way.
            turn = np.where(fine, asked_yaw + s.yaw_gain * (asked_yaw - yaw), asked_yaw)
            q[:, self._waist] -= turn

    def _leaning(self, action: ComplianceAction) -> Array:
        """Joint positions (trials, n) with the body moved forwards over its feet, as upright as it began."""
        s = self.settings
        asked = np.zeros(self.trials)
        if action.wrench is not None:
            force = np.reshape(
                np.broadcast_to(action.wrench, (self.trials, *np.shape(action.wrench)[-2:])), (self.trials, -1, 6)
            )
            height = self.tree.position[:, 2:, 2] - self._planted[:, :1, 2]
            asked = s.lean * np.sum(force[..., 0] * height, axis=-1) / self._weight
        aim = np.clip(asked, -s.most_lean, s.most_lean)
        self._lean += min(1.0, self.timestep / s.lean_time) * (aim - self._lean)
        feet = self._planted.copy()
        feet[..., 0] -= self._lean[:, None]
        return self._legs_to.step(feet, self._soles, self._upright)

    def _leg_torque(self, moment: Array, hands: Array) -> Array:
        """Leg torques (trials, n) that carry the robot, its hands' forces (trials, sites, 3) and moments about x and y.

        Args:
            moment: (trials, 2) beyond what balances [N·m].
            hands: (trials, sites, 3) forces on the hands [N].
        """
        tree = self.tree
        feet, middle = tree.position[:, :2], tree.position[:, :2].mean(axis=1)
        ground = -hands.sum(axis=1)
        ground[:, 2] += self._weight
        centre = self._mass_centre()
        weight = np.zeros_like(centre)
        weight[:, 2] = -self._weight
        turning = np.cross(centre - middle, weight) + np.cross(tree.position[:, 2:] - middle[:, None], hands).sum(
            axis=1
        )
        asked = -turning
        asked[:, :2] += moment
        # About x the loads of the feet differ: half of the difference at half of their distance, twice.
        apart = np.maximum(feet[:, 0, 1] - feet[:, 1, 1], 0.02)
        shift = np.clip(
            asked[:, 0] / (apart * self._weight), -0.5 + self.settings.least_load, 0.5 - self.settings.least_load
        )
        out = np.where(tree.on_chain[:2].any(axis=0), tree.gravity, 0.0)
        for foot in range(2):
            share = 0.5 + (shift if foot == 0 else -shift)
            wrench = np.zeros((self.trials, 6))
            wrench[:, :2] = 0.5 * ground[:, :2]
            wrench[:, 2] = share * ground[:, 2]
            # A force at this foot turns about the middle of both, which the foot's own moment makes up for.
            turned = np.cross(feet[:, foot] - middle, wrench[:, :3])
            wrench[:, 4:] = 0.5 * asked[:, 1:] - turned[:, 1:]
            own = tree.on_chain[foot]
            out[:, own] -= np.einsum("trn,tr->tn", tree.jacobian[:, foot], wrench)[:, own]  # a waist carries both
        return out

    def _mass_centre(self) -> Array:
        tree = self.tree
        where = tree.link_position + np.einsum("tkij,kj->tki", tree.link_rotation, self._centre)
        return np.einsum("k,tki->ti", self._mass, where) / self._mass.sum()


def pitch_and_yaw(quaternion: Array) -> tuple[Array, Array]:
    """Pitch and yaw (...) [rad] of orientations (..., 4), (w, x, y, z): turned about z, then y, then x."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    return pitch, np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def roll_of(quaternion: Array) -> Array:
    """Roll (...) [rad] of orientations (..., 4), (w, x, y, z)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
