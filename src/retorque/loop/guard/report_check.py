"""What a robot's report is worth, joint by joint: bridged, rebuilt, or a fault with its code."""

from __future__ import annotations

import numpy as np

from retorque.loop.guard.motion_check import MotionCheck
from retorque.loop.guard.supervisor_settings import SupervisorSettings
from retorque.loop.guard.torque_check import TorqueCheck
from retorque.loop.health import Health
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

ABSURD = 1e9
"""No report is larger than this, whatever its unit."""
EASE = 0.25
"""Suspicion goes away so much slower than it comes: a fault that shows in every second tick is one."""
MOST = 0.25
"""Most suspicion that is kept [s]."""
WILD = 1.0 / 3.0
"""Where more than this share of the velocities point against their positions' rates, they are wrong as a whole."""
LOOK = 0.02
"""Time between looks at what changes slowly: ranges, numbers that repeat [s]."""


class ReportCheck:
    """Judges reports. `suspect` and `fault` (..., n) say which joints cannot be believed now, and which for too long;
    `blind` (..., n) for which ones any controller works out its torque from wrong numbers.

    A report that agrees with what was expected takes a short way: one comparison of all its numbers. Whatever else
    comes is looked at joint by joint: torques against those sent, velocities against the rate of position. A number
    that another one can stand for is replaced; a trial of which a joint's motion is unknown is shown as NaN.

    Args:
        robot: the ideal robot.
        shape: of a report, (..., n).
        timestep: control period [s].
        settings: of the supervisor.
    """

    def __init__(self, robot: Robot, shape: tuple[int, ...], timestep: float, settings: SupervisorSettings):
        self._shape, self._dt, self._bridge = shape, timestep, settings.bridge
        self._home = robot.home
        lead = shape[:-1]
        limit = np.minimum(robot.torque_limit, ABSURD)
        self.torque = TorqueCheck(limit, shape, timestep, settings.torque_delay)
        self.motion = MotionCheck(robot, shape, timestep)
        self._from_sent = settings.torque_from == "sent"
        self._watching = settings.torque_from == "other"
        self._limit = 1.001 * limit
        self._speed = settings.velocity_margin * np.minimum(robot.velocity_limit, ABSURD)
        self._low, self._high = robot.lower - settings.position_margin, robot.upper + settings.position_margin
        self._margin = max(settings.position_margin, 1e-6)
        self._stack = np.zeros((6, *shape))
        self.now, self._expected = self._stack[:3], self._stack[3:]
        """(3, ..., n) position, velocity and torque as the adapter may use them."""
        self._position, self._velocity, self._torque, _, _, self._expected_torque = self._stack
        self._flat, self._next = self._stack[:5].reshape(5, -1), np.zeros((2, int(np.prod(shape))))
        self._flat_expected = self._flat[3:]
        self._tolerance = np.zeros((3, *shape))
        self._tolerance[0], self._tolerance[1] = self.motion.far, self.motion.jump
        self._tolerance[2] = np.inf if self._watching else self.torque.tolerance
        self._off, self._fine = np.zeros((3, *shape)), np.zeros((3, *shape), dtype=bool)
        self._look = max(2, round(LOOK / timestep))
        self._nothing, self._nobody = np.zeros(shape, dtype=bool), np.zeros(lead, dtype=np.int64)
        self._inside = np.ones((*lead, 1))
        self._level = np.zeros((2, *shape))  # suspicion of motion and torque [s]
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._stack[:] = 0.0
        self.now[0] = self._expected[0] = self._home
        self._before = self.now.copy()
        self._last, self._earlier = np.full((2, *self._shape), np.nan)  # positions of the last two reports
        self._level[:] = 0.0
        self.motion.reset()
        self.torque.reset()
        self._ticks, self._watch, self.calm = 0, 0, False
        self.suspect = self.fault = self.blind = self.dead = self._rebuild = self._nothing
        self.codes = self._nobody
        self.range_gain = self._inside
        """(..., 1) what is left of the correction near the ends of the joints' ranges."""

    def sent(self, torque: Array) -> None:
        """A torque (..., n) has been sent [N·m]."""
        self._expected_torque[...] = self.torque.sent(torque)

    def move(self, by: Array) -> None:
        """Positions and velocities of dead joints are believed to be (2, ..., n) farther."""
        by = np.where(self.dead, by, 0.0)
        ends = self._low, self._high
        self._expected[0] += by[0]
        np.copyto(self._expected[0], np.clip(self._expected[0], *ends), where=self.dead)
        self.motion.drive(by[1])

    def take(self, state: State, step: int) -> State:
        """The report as the adapter may see it, `step` ticks after the last one."""
        now = self.now
        try:
            self._position[...] = state.position
            self._velocity[...] = state.velocity
            self._torque[...] = state.torque
        except (ValueError, TypeError):  # another shape, or no numbers at all
            now[:] = np.nan
            state = State(state.time, *np.full((3, *self._shape), np.nan))
        if step > self.motion.probation:
            self.torque.pause()
        if self._from_sent:
            now[2] = self.torque.newest if self._ticks else 0.0
            state = State(state.time, state.position, state.velocity, now[2].copy())
        self._ticks += 1
        simple = self.calm and step == 1 and self._as_expected() and not self._repeats()
        simple = simple and (self._ticks % self._look > 0 or not self._odd())
        self._last, self._earlier = self._earlier, self._last
        self._last[...] = now[0]
        if simple:
            np.dot(self.motion.weights, self._flat, out=self._next)
            self._flat_expected[...] = self._next
            return state
        return self._sorted_out(state.time, step)

    def _as_expected(self) -> bool:
        off, fine = self._off, self._fine
        np.subtract(self.now, self._expected, out=off)
        np.abs(off, out=off)
        np.less_equal(off, self._tolerance, out=fine)
        if np.count_nonzero(fine) == fine.size:  # cheaper than `all`
            return True
        # A torque that changes quickly is late by more than a lookalike: see whether it was sent at all.
        return bool(fine[:2].all() and not self.torque.wrong(self.now[2]).any() and self.torque.ready)

    def _repeats(self) -> bool:
        """Whether a joint repeats itself: it is looked at for a while."""
        change = self._off[1]
        if np.count_nonzero(change) == change.size:
            return False
        if not ((change == 0.0) & (self.now[0] == self._last)).any():
            return False
        self._watch = self._look
        return True

    def _odd(self) -> bool:
        """Now and then: whether a joint repeats itself or leaves its range."""
        now, before = self.now, self._before
        odd = bool((now[:2] == before[:2]).any() or (self._beyond() > 0.0).any())
        before[:] = now
        self.motion.note_change(self._off[1], self._look * self._dt)
        self.motion.note_restlessness(now[0], self._last, self._earlier, now[1])
        self._tolerance[1] = self.motion.leap
        if odd:  # look at every report until the next time
            self._watch = self._look
        return odd

    def _beyond(self) -> Array:
        """How far positions and velocities are out of range, (..., n); one is twice the margin."""
        q, v = self.now[0], self.now[1]
        away = np.maximum(self._low - q, q - self._high) / self._margin
        return np.maximum(away, 3.0 * (np.abs(v) / self._speed - 1.0))

    def _sorted_out(self, time: float, step: int) -> State:
        """The same where something may be wrong."""
        raw, expected = self.now.copy(), self._expected
        if self.calm:
            self.motion.relax(expected)
        motion = self.motion.take(raw, expected, step, raw[2] if self._watching else self.torque.newest)
        self._tolerance[1] = self.motion.leap
        finite = np.isfinite(raw[2]) & (np.abs(raw[2]) < ABSURD)
        wrong = ~finite if self._watching else ~finite | self.torque.wrong(raw[2])
        saturated = np.isfinite(raw[2]) & (np.abs(raw[2]) > self._limit)
        wrong |= saturated
        bad = np.stack([motion.suspect, wrong])
        rate = np.where(bad, step * self._dt, -EASE * step * self._dt)
        self._level = np.minimum(np.maximum(self._level + rate, 0.0), MOST)
        lasting = self._level > self._bridge + 1e-9
        slipped = motion.slipped
        unknown = motion.suspect & ~(lasting[0] & motion.rebuilt)
        wild = motion.contrary.mean(axis=-1, keepdims=True) > WILD
        dead = lasting[0] & motion.dead
        driven = wild | (lasting[0] & motion.contrary)  # by the controller's own damping
        self.blind = dead | driven
        self.dead = dead & motion.still
        self.suspect = unknown & ~self.blind
        self.fault = (lasting[0] & ~self.blind) | lasting[1] | slipped
        # A wrong velocity passes for a right one now and then: its joint's is rebuilt until all suspicion is gone.
        self._rebuild = (self._rebuild | (motion.disagree & lasting[0])) & (self._level[0] > 0.0)
        velocity = np.where(dead & motion.still, self.motion.coast, motion.velocity)
        velocity = np.where(self._rebuild, motion.rate, velocity)
        self._keep(raw, motion.position, np.where(driven, 0.0, velocity), wrong)
        codes = self._codes(raw, motion.missing, motion.dead, motion.disagree & lasting[0], slipped, wrong & finite)
        codes |= np.where(saturated.any(axis=-1), int(Health.SATURATED), 0)
        self.codes = codes | self._fade_in_range()
        self._watch = max(self._watch - 1, 0)
        idle = self.motion.idle and self.range_gain is self._inside and not self._watch
        self.calm = bool(idle and not bad.any() and not self._level.any())
        if self.calm:
            self.suspect = self.fault = self.blind = self.dead = self._nothing
            self.codes = self._nobody
        hidden = (unknown | driven).any(axis=-1)
        shown = np.where(hidden[..., None], np.nan, self.now) if hidden.any() else self.now.copy()
        return State(time, shown[0], shown[1], shown[2])

    def _keep(self, raw: Array, position: Array, velocity: Array, wrong: Array) -> None:
        """What the correction is computed at: what was reported, rebuilt or, where neither is known, expected."""
        self.now[0], self.now[1] = position, velocity
        self.now[2] = np.where(wrong, self.torque.newest if self.torque.ready else 0.0, raw[2])

    def _codes(self, raw: Array, missing: Array, dead: Array, disagree: Array, slipped: Array, wrong: Array) -> Array:
        codes = np.zeros(self._shape[:-1], dtype=np.int64)
        not_finite = missing | ~np.isfinite(raw[2])
        for which, code in (
            (not_finite, Health.BAD_STATE),
            (dead, Health.FROZEN),
            (disagree, Health.VELOCITY_REPORT),
            (slipped, Health.SLIPPED),
            (wrong, Health.TORQUE_REPORT),
        ):
            if which.any():
                codes |= np.where(which.any(axis=-1), int(code), 0)
        return codes

    def _fade_in_range(self) -> Array:
        """Set what range leaves of the correction, and give its code."""
        beyond = self._beyond().max(axis=-1)
        if not (beyond > 0.0).any():
            self.range_gain = self._inside
            return self._nobody
        self.range_gain = np.clip(1.0 - beyond, 0.0, 1.0)[..., None]
        return np.where(beyond > 0.0, int(Health.OUT_OF_RANGE), 0)
