"""Explanations that compete for a mismatch: a touch from outside, a payload, a drive, one joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.default.hypotheses import Hypothesis
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import mount
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame, Robot
from retorque.work.array import Array

HAND_FORCE, HAND_MOMENT = 25.0, 2.5
"""Standard deviations of a wrench at the hand [N, N·m], for an arm of the Panda's strength."""
ARM_FORCE = 40.0
"""... and of a force at a link in the middle of the arm [N]."""
PUSH_MEMORY, PULSE_MEMORY = 2.5, 0.15
"""How long a push, and a blow that no wrench describes, keep their size and direction [s]."""
SETTLING = 4.0
"""Log odds against a push's having just come to keep its size."""
WARY, BEHIND = 6.0, 3.0
"""Log odds by which the robot's own change must lead a push that keeps its size, where it came slowly, and by which it
may be behind it, where it came at once."""
WORSE = 0.5
"""... and how much worse it may have explained the last measurements where it came slowly: what led while a push was
still growing leads no more once that keeps its size."""
GONE = 0.3
"""Log odds by which nothing may be behind a touch when that is over."""
FORGIVEN = 3.0
"""Log odds by which it is ever taken to be behind: however hard a touch was, it is soon over."""
HOPELESS, ROUND = 30.0, 0.5
"""Log odds by which the robot's own explanations are behind when all begin anew, and the least time between [s]."""
MOST_GAIN = 0.3
"""Largest change of the drives that nothing speaks against."""
STRANGE_MASS, STRANGE_REACH, STRANGE_GAIN = 0.025, 0.25, 0.05
"""Standard deviations of what lies beyond what can be put down or carried, is near the mount, or a drive can lose: of
the largest mass, of the largest reach, and of a gain."""
IMPOSSIBLE = 3.0
"""Deviations beyond what is carried at which nothing can have been put down."""
OWN_WIDTH = 0.05
"""Velocity over which the friction of a joint that changed switches [rad/s]."""
ARM_TORQUE = 87.0
"""Largest torque limit of the Panda: other robots' pushes are scaled by theirs [N·m]."""


@dataclass(frozen=True)
class Decision:
    """What is decided of each disputed trial; where neither holds, it is undecided or from outside: do not press."""

    payload: Array
    """(trials,) the robot carries something else, or all drives changed alike."""
    joint: Array
    """(trials,) index of the one joint that changed; -1: none."""


class Explanations:
    """Log odds of each explanation, from the moment at which a mismatch began.

    From outside: a wrench at the hand, a force at the middle of the arm, or any torques at the joints. The robot's own:
    a payload together with a common factor of the drives (ten inertial numbers at the mount: it hangs with gravity,
    moves with acceleration and must agree over poses), or the bias, gain and friction of one joint.

    Args:
        robot: the ideal robot.
        trials: robots served at once.
        step: time between equations [s].
    """

    remembered = ("_weighed_for", "_nothing", "_hand", "_arm", "_anything", "_steady", "payload", "joints")

    def __init__(self, robot: Robot, trials: int, step: float):
        self.robot, self._step = robot, step
        self._weighed_for = np.zeros(trials)  # since all began anew [s]
        self._body = RigidBody(robot)
        profile = profile_of(robot)
        limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 30.0 * profile.friction_max)
        size = float(np.max(limit)) / ARM_TORQUE
        self._links = _arm_frames(robot)
        wrench = size * np.array([HAND_FORCE] * 3 + [HAND_MOMENT] * 3)
        mass = max(2.0 * profile.payload_mass[1], 0.1)
        reach = 2.0 * profile.payload_centre
        carried = np.array([mass, *[mass * reach] * 3, *[mass * reach**2] * 6, 0.1])
        self._nothing = Hypothesis(np.zeros(1), trials, np.inf, 0.0, step)
        self._hand = Hypothesis(wrench, trials, PUSH_MEMORY, 0.0, step)
        self._arm = Hypothesis(np.full(3, size * ARM_FORCE), trials, PUSH_MEMORY, -1.0, step)
        self._anything = Hypothesis(0.15 * limit, trials, PULSE_MEMORY, -3.0, step)
        self._steady = Hypothesis(wrench, trials, np.inf, -SETTLING, step)
        self._most_mass, self._reach = 2.0 * mass, 2.0 * reach
        self.payload = Hypothesis(carried, trials, np.inf, -2.0, step)
        per_joint = np.stack([0.1 * np.ones(robot.n), profile.bias_max, profile.friction_max, profile.viscous_max], -1)
        self.joints = [Hypothesis(own, trials, np.inf, -4.0, step) for own in per_joint]

    def restart(self, which: Array) -> None:
        """A mismatch begins in these trials (trials,)."""
        for hypothesis in self._all:
            hypothesis.restart(which)
        self._weighed_for[which] = 0.0

    def renew(self, which: Array) -> Array:
        """Where no own explanation has a chance any more, all get another one: something may have been picked up, or a
        drive have changed, since the mismatch began; of the trials (m,) that are weighed, those that begin anew."""
        again = which[(self._own - self._outside < -HOPELESS)[which] & (self._weighed_for[which] > ROUND)]
        for hypothesis in self._all:
            hypothesis.renew(again)
        self._weighed_for[again] = 0.0
        return again

    def take(
        self, which: Array, y: Array, noise: Array, q: Array, qd: Array, qdd: Array, torque: Array, weight: float
    ) -> None:
        """Weigh one averaged equation of the disputed trials.

        Args:
            which: their indices (m,).
            y: torque that the estimate does not explain (m, n) [N·m].
            noise: its covariance (m, n, n).
            q: positions (m, n) [rad].
            qd: velocities (m, n) [rad/s].
            qdd: accelerations (m, n) [rad/s²].
            torque: commands (m, n) [N·m].
            weight: share of an independent equation that it is worth.
        """
        n, w = self.robot.n, weight
        self._weighed_for[which] += self._step
        hand, arm = self._touches(q)
        nothing = self._nothing.take(which, y, np.zeros((len(y), n, 1)), noise, w)
        self._hand.take(which, y, hand, noise, w)
        self._steady.take(which, y, hand, noise, w)
        self._settle(which)
        self._arm.take(which, y, arm, noise, w)
        self._anything.take(which, y, np.broadcast_to(-np.eye(n), (len(y), n, n)), noise, w)
        carried = self._body.regressor(q, qd, qdd)[..., self.columns]
        self.payload.take(which, y, np.concatenate([carried, torque[..., None]], axis=-1), noise, w)
        own = np.stack([torque, np.ones_like(torque), np.tanh(qd / OWN_WIDTH), qd], axis=-1)
        for j, hypothesis in enumerate(self.joints):
            moves = np.abs(qd[:, j]) > OWN_WIDTH
            rows = np.zeros((int(moves.sum()), n, own.shape[-1]))
            rows[:, j] = own[moves, j]
            hypothesis.take(which[moves], y[moves], rows, noise[moves], w)
            hypothesis.evidence[which[~moves]] += nothing[~moves]  # a joint that sticks tells nothing of itself
        np.maximum(self._nothing.recent, self._touch_recent - FORGIVEN, out=self._nothing.recent)

    def _settle(self, which: Array) -> None:
        """A push that has been growing may have come to keep its size."""
        least = self._hand.evidence[which] - SETTLING
        anew = which[self._steady.evidence[which] < least]
        self._steady.mean[anew], self._steady.covariance[anew] = self._hand.mean[anew], self._hand.covariance[anew]
        self._steady.evidence[which] = np.maximum(self._steady.evidence[which], least)

    def _touches(self, q: Array) -> tuple[Array, Array]:
        """Torques that a wrench at the hand (m, n, 6) and a force at the arm (m, n, 3) leave unexplained."""
        hand = self._body.jacobian(self.robot.end_effector, q)
        arm = self._body.jacobian(self._links, q)[..., :3, :]
        return -np.swapaxes(hand, -1, -2), -np.swapaxes(arm, -1, -2)

    def verdict(self, least: Array, carried: Array, slow: Array) -> Decision:
        """What holds against everything from outside, and against nothing at all.

        Args:
            least: log odds that are asked for (trials,).
            carried: mass that can be put down (trials,) [kg].
            slow: (trials,) where it came slowly.
        """
        joints = np.array([h.evidence for h in self.joints])
        best = np.argmax(joints, axis=0)
        joint = np.max(joints, axis=0)
        payload = self.payload.evidence - self._strangeness(carried)
        best_own = np.maximum(payload, joint)
        ahead = best_own - self._steady.evidence
        own = (best_own - self._outside > least) & (ahead > np.where(slow, WARY, -BEHIND))
        recent = np.take_along_axis(np.array([h.recent for h in self.joints]), best[None], axis=0)[0]
        recent = np.where(payload >= joint, self.payload.recent, recent)
        own &= ~slow | (recent > self._steady.recent - WORSE)
        return Decision(own & (payload >= joint), np.where(own & (joint > payload), best, -1))

    @property
    def _all(self) -> tuple[Hypothesis, ...]:
        return (self._nothing, self._hand, self._arm, self._anything, self._steady, self.payload, *self.joints)

    @property
    def _outside(self) -> Array:
        """(trials,) evidence of the best explanation that is not the robot's own."""
        best: Array = np.max([h.evidence for h in (self._nothing, self._hand, self._arm, self._anything)], axis=0)
        return best

    @property
    def _own(self) -> Array:
        """(trials,) evidence of the best one that is, possible or not."""
        best: Array = np.max([h.evidence for h in (self.payload, *self.joints)], axis=0)
        return best

    @property
    def over(self) -> Array:
        """(trials,) whether nothing at all has lately been as good an explanation as a touch that lasts."""
        return self._nothing.recent > self._touch_recent - GONE

    @property
    def _touch_recent(self) -> Array:
        """(trials,) how well the best touch has explained the last measurements."""
        best: Array = np.max([h.recent for h in (self._hand, self._arm, self._anything)], axis=0)
        return best

    def _strangeness(self, carried: Array) -> Array:
        """Log odds against the payload and the drives' factor that fit best, for what they are (trials,)."""
        mass, moment, gain = self.payload.mean[:, 0], self.payload.mean[:, 1:4], self.payload.mean[:, -1]
        near = self._reach * np.maximum(np.abs(mass), 0.3 * self._most_mass / 4.0)
        beyond = (
            (-carried - mass) / (STRANGE_MASS * self._most_mass),
            (mass - self._most_mass) / (STRANGE_MASS * self._most_mass),
            (np.abs(moment).max(axis=-1) - near) / (STRANGE_REACH * near),
            (np.abs(gain) - MOST_GAIN) / STRANGE_GAIN,
        )
        against: Array = 0.5 * np.sum(np.maximum(beyond, 0.0) ** 2, axis=0)
        return np.where(beyond[0] < IMPOSSIBLE, against, np.inf)

    @property
    def columns(self) -> slice:
        """Where the payload's ten numbers stand among those of all links."""
        where = mount(self.robot)
        index = where[0] if where is not None else len(self.robot.moving_links) - 1
        return slice(10 * index, 10 * index + 10)


def _arm_frames(robot: Robot) -> Frame:
    """A frame in the middle of the chain to the hand."""
    chain, name = [], robot.end_effector.link
    while name != "world":
        link = robot.link(name)
        if link.joint is not None:
            chain.append(link)
        name = link.parent
    middle = chain[len(chain) // 2]
    return Frame(link=middle.name, position=middle.centre)
