"""The promise not to press harder: how far a correction may grow while something may be in the way."""

from __future__ import annotations

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame, Robot
from retorque.work.array import Array

MEMORY = 0.1
"""Time over which the nominal torque that moves nothing is averaged [s]."""
ANCHOR, LOAD = 0.3, 1.0
"""... over which the correction of a free robot is, and over which the load in its hand is fitted to it [s]."""
MOST_LOAD = 3.0
"""Most that it is taken to carry [largest payloads]."""
BAND = 0.15
"""Share of a joint's largest friction that may move nothing although the robot is free."""
SWING = 2.0
"""Share of its largest friction by which a joint that moves may change its correction when it turns round."""
MOVES, RECENTLY = 0.1, 0.5
"""A joint moves where it was this fast [rad/s]; how quickly that is forgotten [s]."""
TRAVEL = 0.3
"""Time over which that speed is averaged: a robot that bounces off something goes nowhere [s]."""
HASTE = 1.5
"""A joint's speed is averaged over `MEMORY`, so that it changes so much more quickly than it seems to."""
REST, STILL = 0.15, 0.02
"""A robot slower than this [rad/s] for longer than this [s] may be held by something."""
LEAST_LEVER = 0.03
"""Levers shorter than this carry no force that could be told [m]."""
EXPLAINED = 0.3
"""A point explains a growth if its force leaves no more than this share of the squared torques."""
ROUNDS = 4
"""A growth that several points explain is cut a few times, at last as a whole."""
MARGIN = 0.35
"""Share of the promise that is spent: the point and the direction of a contact are not known exactly."""
CARRIED = 0.25
"""Share of it that may look like a payload: at a point with a shorter lever the same torques are more force."""
SURELY = 1.0 - 1e-6
"""Share of a squared force below which rounding decides nothing."""
PAYLOADS = 4.5
"""The default promise is the weight of so many of the largest payloads that may be hidden."""


def default_force(robot: Robot) -> float:
    """The weight of four and a half of the largest payloads of the robot's profile [N].

    A quarter of it is what a payload picked up at once may weigh, a third what else the correction may grow by.
    """
    return PAYLOADS * profile_of(robot).payload_mass[1] * float(np.linalg.norm(robot.gravity))


class ContactForce:
    """Limits how much the correction may grow since the robot was last seen to be free.

    A corrected robot that is free moves as the ideal one does, so the nominal torque is all spent on its motion. What
    is left over, w = τ_nominal - ID₀(q, q̇, q̈), is what the nominal command presses with, or what the adapter has not
    learnt yet. While w is not small, or the robot rests, its correction c is compared with the last free one c₀: of
    c - c₀, the largest force at a point of the arm that explains it, f = (J Jᵀ)⁻¹ J (c - c₀), stays within the
    promise. A joint that has just moved may change its correction by its own friction on top, and any robot by what
    the largest payload of its profile weighs at the hand.

    Args:
        robot: the ideal robot.
        shape: of a report, (..., n).
        period: time between windows [s].
        most: the promise [N].
    """

    def __init__(self, robot: Robot, shape: tuple[int, ...], period: float, most: float):
        self.most = most
        """[N]"""
        self._told = MARGIN * most
        self._body, self._points = RigidBody(robot), _points(robot)
        self._period, self._rate, self._follow = period, min(1.0, period / MEMORY), min(1.0, period / ANCHOR)
        profile = profile_of(robot)
        self._band = BAND * np.maximum(profile.friction_max, 1e-3)
        lead, n = shape[:-1], shape[-1]
        self._swing = SWING * profile.friction_max
        self._left, self._anchor, self._velocity = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._travel, self._drift = min(1.0, period / TRAVEL), np.zeros(shape)  # speed over a longer time [rad/s]
        self._moved, self._forget = np.zeros(shape), float(np.exp(-period / RECENTLY))
        heavier, lighter = profile.armature_max - robot.armature, robot.armature - profile.armature_min
        self._rotor = HASTE * np.maximum(heavier, lighter)  # by how much more a rotor may weigh, or less [kg·m²]
        self._pace = np.zeros(shape)  # how quickly a joint has changed its speed [rad/s²]
        self._own = self._less = np.zeros(shape)  # what a moving joint may need itself, either way [N·m]
        self._gravity = np.asarray(robot.gravity)
        share = CARRIED * most / max(float(np.linalg.norm(self._gravity)), 1e-9)
        self._heaviest = min(profile.payload_mass[1], share)  # [kg]
        self._hand = robot.end_effector
        self._weight = np.zeros(shape)  # torques that hold a kilogram in the hand [N·m]
        self._fit, self._learn = np.zeros((2, *lead)), min(1.0, period / LOAD)  # of a load: w·c and w·w
        self._unloaded = np.zeros(shape)  # the correction without that load [N·m]
        self._rest = np.zeros(lead)
        self.engaged = np.zeros(lead, dtype=bool)
        """(...) where something may be in the way."""
        self._jacobian = np.zeros((*lead, len(self._points), 3, n))
        self._inverse = np.zeros((*lead, len(self._points), 3, n))
        self._room = np.full(shape, np.inf)  # what a correction may certainly have grown by [N·m]
        self._grown, self._within = np.zeros(shape), np.zeros(shape, dtype=bool)
        self._roomy = True  # whether that was enough in this window so far
        # Of a growth, in one product: the payload that would need it [kg], and the forces at all points [N]; and those
        # of a kilogram. Zero where nothing is in the way.
        self._sight = np.zeros((*lead, 1 + 3 * len(self._points), n))
        self._kilogram = np.zeros((*lead, 3 * len(self._points)))
        self.active = False
        """Whether any trial is."""

    def reset(self) -> None:
        """Nothing is known of the robot."""
        for array in (self._left, self._anchor, self._fit, self._unloaded, self._velocity, self._drift):
            array[...] = 0.0
        for array in (self._moved, self._pace, self._own, self._rest):
            array[...] = 0.0
        self.engaged[...] = False
        self.active = False

    def window(self, left: Array, correction: Array, report: Array, good: Array) -> None:
        """Take in a window: torque that moved nothing, mean correction (..., n) [N·m], and its last report (3, ..., n).

        Args:
            left: what the correction leaves unexplained.
            correction: as it was sent.
            report: position, velocity and torque.
            good: (...) whether the window counts.
        """
        if not np.isfinite(self.most):
            return
        use = good[..., None]
        self._left += np.where(use, self._rate * (left - self._left), 0.0)
        faster = np.where(use, report[1] - self._velocity, 0.0)
        self._velocity += self._rate * faster
        self._drift += np.where(use, self._travel * (report[1] - self._drift), 0.0)
        self._pace = np.maximum(self._forget * self._pace, np.abs(faster) / MEMORY)
        slow = np.abs(self._velocity) < STILL
        self._moved = np.maximum(self._forget * self._moved, np.abs(self._drift))
        self._own = np.where(self._moved > MOVES, self._swing, 0.0) + self._rotor * self._pace
        still = slow.all(axis=-1)
        self._rest = np.where(still, self._rest + self._period, 0.0)
        # An array of one robot as well, which a reset writes to.
        self.engaged = np.asarray((np.abs(self._left) > self._band).any(axis=-1) | (self._rest > REST))
        self._follow_load(correction, report[0], good & ~self.engaged)
        self.active = bool(self.engaged.any())
        for trial in np.argwhere(self.engaged):
            self._look(tuple(trial), report[0][tuple(trial)])
        self._room = np.where(self.engaged[..., None], self._room + self._own, np.inf)
        self._sight[~self.engaged] = 0.0
        self._less, self._roomy = -self._own, True

    def _follow_load(self, correction: Array, position: Array, free: Array) -> None:
        """What the correction of a free robot is, as a load in the hand and a rest: the load is carried to wherever the
        arm goes, so that its weight there is no growth."""
        self._weight = -np.matmul(self._gravity, self._body.jacobian(self._hand, position)[..., :3, :])
        now = np.stack([np.vecdot(self._weight, correction), np.vecdot(self._weight, self._weight)])
        self._fit += np.where(free, self._learn * (now - self._fit), 0.0)
        most = MOST_LOAD * self._heaviest
        load = np.clip(self._fit[0] / np.maximum(self._fit[1], 1e-9), -most, most)  # [kg]
        carried = load[..., None] * self._weight
        self._unloaded += np.where(free[..., None], self._follow * (correction - carried - self._unloaded), 0.0)
        self._anchor = self._unloaded + carried

    def kept(self, correction: Array) -> bool:
        """Whether a correction (..., n) keeps the promise [N·m]."""
        grown, within = self._grown, self._within
        np.subtract(correction, self._anchor, out=grown)
        if self._roomy:
            np.less_equal(np.abs(grown), self._room, out=within)
            if np.count_nonzero(within) == within.size:
                return True
            self._roomy = False
        return self._weak() or self.limited(correction) is correction

    def _weak(self) -> bool:
        """Whether the force of the growth is clearly within the promise at every point: what `limited` finds, in few
        operations, since a bad correction asks for it at every tick."""
        grown = self._grown
        grown -= np.minimum(np.maximum(grown, self._less), self._own)
        seen = np.matmul(self._sight, grown[..., None])[..., 0]
        mass = np.minimum(np.maximum(seen[..., :1], -self._heaviest), self._heaviest)
        force = (seen[..., 1:] - mass * self._kilogram).reshape(-1, 3)
        clearly = np.vecdot(force, force) <= SURELY * self._told**2
        return np.count_nonzero(clearly) == clearly.size

    def limited(self, correction: Array) -> Array:
        """The correction (..., n) within the promise [N·m]; the same array where it already is."""
        cut = correction
        for turn in range(ROUNDS):
            grown = cut - self._anchor
            grown -= np.clip(grown, -self._own, self._own)
            grown -= self._carried(grown)
            beyond = self._beyond(grown)
            if beyond is None:
                break
            share, explained = beyond
            cut = cut - share * (explained if turn < ROUNDS - 1 else grown)
        return cut

    def _carried(self, grown: Array) -> Array:
        """What of a growth (..., n) a payload that is picked up or put down would need [N·m]."""
        weight = self._weight
        mass = np.sum(weight * grown, axis=-1) / np.maximum(np.sum(weight * weight, axis=-1), 1e-9)
        return np.clip(mass, -self._heaviest, self._heaviest)[..., None] * weight

    def _beyond(self, grown: Array) -> tuple[Array, Array] | None:
        """The share (..., 1) by which a growth (..., n) is beyond the promise at the point that explains it, and what
        of it that point explains (..., n) [N·m]; none where it is within."""
        force = np.matmul(self._inverse, grown[..., None, :, None])[..., 0]  # (..., points, 3) [N]
        size = np.sqrt(np.sum(force * force, axis=-1))
        if not (np.any(size > self._told, axis=-1) & self.engaged).any():
            return None
        explained = np.matmul(force[..., None, :], self._jacobian)[..., 0, :]  # (..., points, n) [N·m]
        missed = np.sum((grown[..., None, :] - explained) ** 2, axis=-1)
        close = np.maximum(EXPLAINED * np.sum(grown * grown, axis=-1), missed.min(axis=-1))[..., None]
        best = np.argmax(np.where(missed <= close, size, -1.0), axis=-1)[..., None]
        size = np.take_along_axis(size, best, axis=-1)
        beyond = self.engaged[..., None] & (size > self._told)
        if not beyond.any():
            return None
        share = np.where(beyond, 1.0 - 0.999 * self._told / np.maximum(size, 1e-9), 0.0)
        return share, np.take_along_axis(explained, best[..., None], axis=-2)[..., 0, :]

    def _look(self, trial: tuple[int, ...], position: Array) -> None:
        """Where each point of one trial's arm is, and which force there a torque amounts to."""
        for index, point in enumerate(self._points):
            jacobian = self._body.jacobian(point, position)[:3]
            gram = jacobian @ jacobian.T + LEAST_LEVER**2 * np.eye(3)
            self._jacobian[(*trial, index)] = jacobian
            self._inverse[(*trial, index)] = np.linalg.solve(gram, jacobian)
        weight = self._weight[trial]
        forces = self._inverse[trial].reshape(-1, len(weight))
        self._sight[trial] = np.vstack([weight / max(weight @ weight, 1e-9), forces])
        self._kilogram[trial] = forces @ weight
        most = np.linalg.norm(np.abs(self._inverse[trial]) @ self._band, axis=-1).max()  # if all joints add up
        self._room[trial] = self._told / max(most, 1e-9) * self._band


def _points(robot: Robot) -> list[Frame]:
    """Points of the arm that may touch something: the hand, and every joint beyond the second."""
    body = RigidBody(robot)
    points = [robot.end_effector]
    places = [body.frame_pose(robot.end_effector, robot.home)[0]]
    for link in reversed(robot.moving_links[2:]):
        frame = Frame(link=link.name)
        place = body.frame_pose(frame, robot.home)[0]
        if min(np.linalg.norm(place - other) for other in places) > LEAST_LEVER:
            points.append(frame)
            places.append(place)
    return points
