"""Whether a robot's positions and velocities agree with one another and with what joints can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

MEMORY = 0.1
"""Time over which position and integrated velocity are compared [s]."""
FAR = 0.012
"""Largest distance between them: noise, and a velocity that comes a little late [rad]."""
LATE = 2.0
"""Ticks that a velocity may be late."""
JUMP = 0.2
"""Velocities change by less within a tick, unless the motor is that strong [rad/s]."""
LEAP, LEAST_LEAP, LEAP_MEMORY = 10.0, 0.05, 1.0
"""A velocity that changes within a tick by so many times what is usual, by at least the second [rad/s], and then
repeats with its position, comes from a dead encoder: no joint stops like that. What is usual is learnt over the third
[s]."""
STRONG = 0.5
"""Share of what the torque limit can do to a joint's velocity within a tick that is no jump."""
BRAKE = 0.03
"""Time in which a joint is stopped whose encoder has died [s]."""
SLIP = 0.03
"""A position that jumps by more within a tick, beyond what the velocity limit explains, has slipped [rad]."""
SETTLED = 0.01
"""A slipped position that has stayed for so long is a new zero [s]."""
PROBATION = 0.02
"""A velocity that jumped is not believed before its position agrees for so long [s]."""
SLOW, RESTLESS, RESTLESS_MEMORY, REPEATED = 0.05, 0.25, 15, 5.0
"""Positions of a joint slower than the first [rad/s] that turn round from tick to tick, in more than the second of the
last looks, of which the third counts, are noise that never rests, unless they repeat, which counts against it so many
times. Where such numbers repeat after all, the encoder is dead, even at rest."""
REPEATS = 5
"""Reports in a row that repeat a number before it counts as stuck."""
STILL = 0.02
"""Position and velocity that repeat exactly for so long are a joint at rest, or no report at all [s]."""
CONSTANT = 0.3
"""Share of `FAR` that is far where a velocity repeats exactly."""
RESOLUTION = 1e-3
"""Encoders tell smaller motions than this [rad]."""
CONTRARY, CONTRADICTED = 0.1, 0.005
"""A suspect velocity that points against the rate of position, farther from it than the first [rad/s], for the second
[s] is no mere glitch."""
REBUILT = 0.015
"""Time constant of velocities that are rebuilt from positions [s]."""


@dataclass
class JudgedMotion:
    """What a report's positions and velocities are worth."""

    position: Array
    """(..., n) without slips; integrated velocity where a position is stuck [rad]."""
    velocity: Array
    """(..., n) rate of position where a velocity is wrong [rad/s]."""
    rate: Array
    """(..., n) velocity from positions alone [rad/s]."""
    suspect: Array
    """(..., n) not to be believed at this tick."""
    rebuilt: Array
    """(..., n) suspect, but the other number of the joint says what it must be."""
    missing: Array
    """(..., n) not finite."""
    dead: Array
    """(..., n) stuck: it repeats although it moves, or must."""
    disagree: Array
    """(..., n) velocity is not the rate of position."""
    slipped: Array
    """(..., n) the position's zero has moved."""
    contrary: Array
    """(..., n) suspect, and against the rate of position for a moment."""
    still: Array
    """(..., n) position and velocity both repeat."""


class MotionCheck:
    """Compares each position with where the last ones and the velocities would have it.

    An observer x' = v + (q - x) / MEMORY is a tick ahead of every position. A wrong velocity leaves its error times
    MEMORY between them, a slip all of itself at once.

    Args:
        robot: the ideal robot.
        shape: of a report, (..., n).
        timestep: control period [s].
    """

    def __init__(self, robot: Robot, shape: tuple[int, ...], timestep: float):
        self._dt = timestep
        self._gain = min(1.0, timestep / MEMORY)
        fastest = np.minimum(robot.velocity_limit, 10.0)
        inertia = np.maximum(np.diagonal(RigidBody(robot).mass_matrix(robot.home)), 1e-6)
        limit = np.minimum(robot.torque_limit, 1e3)
        self.far = FAR + LATE * timestep * fastest
        """(n,) [rad]"""
        self.jump = np.maximum(JUMP, STRONG * timestep * limit / inertia)
        """(n,) [rad/s]"""
        self.inertia = inertia
        """(n,) [kg·m²]"""
        self.brake = float(1.0 - np.exp(-timestep / BRAKE))
        """Share of its velocity that a joint loses in a tick whose encoder is dead."""
        self._fastest = fastest
        self._slip = SLIP + 2.0 * timestep * fastest
        profile = profile_of(robot)
        self.held = profile.friction_max + profile.bias_max + 0.02 * limit
        """(n,) what rest can hide [N·m]."""
        self._settled = max(3, round(SETTLED / timestep))
        self.probation = max(3, round(PROBATION / timestep))
        """Ticks without a report after which a joint may be anywhere."""
        self._still_ticks = max(REPEATS, round(STILL / timestep))
        self.contradicted = max(3, round(CONTRADICTED / timestep))
        """Ticks in a row."""
        fade = np.exp(-timestep / REBUILT)
        self._alpha, self._beta = 1.0 - fade**2, (1.0 - fade) ** 2 / timestep
        self.weights = np.array([[self._gain, timestep, 0.0, 1.0 - self._gain, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
        """(2, 5) of position, velocity, torque, expected position and velocity: what is expected next."""
        zeros = np.zeros(shape)
        self._raw = np.zeros((2, *shape))
        self.offset = zeros.copy()
        """(..., n) by how much positions have slipped [rad]."""
        self._error, self._slip_error, self._start_torque = zeros.copy(), zeros.copy(), zeros.copy()
        self._rebuilt = np.zeros((2, *shape))  # position, velocity
        counters = np.zeros((7, *shape), dtype=np.int64)
        self._slipping, self._waiting, self._lost, self._same_q, self._same_v, self._still, self._contrary = counters
        self._stopped = np.zeros(shape, dtype=bool)
        self._leapt = np.zeros(shape, dtype=np.int64)  # leaps in a row
        self._restless = zeros.copy()  # share of looks at which positions turn round
        self._usual = np.zeros(shape)  # mean square of a velocity's change within a tick
        self.leap = np.zeros(shape)
        """(..., n) a velocity that changes by more within a tick is looked at [rad/s]."""
        self.coast = np.zeros(shape)
        """(..., n) velocity that a joint may have whose numbers repeat [rad/s]."""

    def reset(self) -> None:
        """Forget everything; the next report of each joint is believed."""
        self.offset[...] = 0.0
        self.relax(self._raw)
        self._usual[...] = (self.jump / LEAP) ** 2
        self._restless[...] = 0.0
        self.leap[...] = self.jump
        self._lost[...] = self.probation

    def relax(self, expected: Array) -> None:
        """All was well until now, and this (2 or 3, ..., n) is expected next: no suspicion is left."""
        self._raw[:] = np.nan
        self._rebuilt[:] = expected[:2]
        for array in (self._error, self._slipping, self._waiting, self._lost, self._same_q, self._same_v, self._still,
                      self._contrary):  # fmt: skip
            array[...] = 0
        self._leapt[...] = 0
        self._stopped[...] = False

    def note_change(self, change: Array, period: float) -> None:
        """Velocities have changed by so much (..., n) within a tick, as they are seen once in a period [s] to do."""
        self._usual += min(1.0, period / LEAP_MEMORY) * (np.square(change) - self._usual)
        self.leap[...] = np.minimum(self.jump, np.maximum(LEAST_LEAP, LEAP * np.sqrt(self._usual)))

    def note_restlessness(self, now: Array, last: Array, earlier: Array, velocity: Array) -> None:
        """Look at the last three positions (..., n) of joints with these velocities (..., n)."""
        turns = ((now > last) & (last < earlier)) | ((now < last) & (last > earlier))
        seen = turns - REPEATED * ((now == last) | (last == earlier))
        self._restless += np.where(np.abs(velocity) < SLOW, (seen - self._restless) / RESTLESS_MEMORY, 0.0)

    @property
    def repeats(self) -> Array:
        """(..., n) for how many ticks position and velocity have repeated."""
        return self._still

    @property
    def idle(self) -> bool:
        """Whether nothing is under suspicion."""
        busy = (self.offset, self._waiting, self._slipping, self._still, self._leapt)
        return not any(each.any() for each in busy)

    def take(self, report: Array, expected: Array, step: int, sent: Array) -> JudgedMotion:
        """Judge a report (3, ..., n) by what was expected (2, ..., n), which becomes what is expected next.

        Args:
            report: position, velocity and torque as they came.
            expected: position without slips, and velocity.
            step: ticks since the last report.
            sent: the torque that was sent last, (..., n) [N·m].
        """
        dt = self._dt
        finite = np.isfinite(report[:2]).all(axis=0) & (np.abs(report[:2]) < 1e6).all(axis=0)
        q = np.where(finite, report[0] - self.offset, expected[0])
        v = np.where(finite, report[1], expected[1])
        # A few ticks are bridged by the last velocity; after more than that a joint may be anywhere.
        gone = (self._lost >= self.probation) & (report[0] != self._raw[0])
        anew = finite & (gone | (step > self.probation))
        centre = np.where(anew, q, expected[0] + (min(step, self.probation) - 1) * dt * expected[1])
        repeats = (self._still > 0) & self._stopped  # where it is believed to be may move, but not what it reports
        self._note_slips(np.where(finite, q - centre, self._error), finite & ~anew & ~repeats)
        q = np.where(finite, report[0] - self.offset, centre)
        error = q - centre
        jumped = finite & ~anew & (np.abs(v - expected[1]) > self.jump * step)
        change = np.where(finite & ~anew, v - expected[1], 0.0)
        leapt = np.abs(change) > self.leap * step
        self.coast = np.where(leapt, expected[1], self.coast)
        self._waiting = np.where(jumped, self.probation, np.maximum(self._waiting - step, 0))
        dead = self._note_repeats(report, sent)
        self.note_change(np.where(self._still > 0, np.sqrt(self._usual), np.clip(change, -self.jump, self.jump)), dt)
        self._leapt = np.where(leapt, self._leapt + 1, 0)
        near = np.where(self._same_v >= self._still_ticks, CONSTANT, 1.0) * self.far
        far = finite & (np.abs(error) > near * min(step, 3)) & (self._slipping == 0)
        missed = self._same_q * dt * np.abs(v)  # what a position that repeats should have moved by
        stuck_q = (self._same_q >= REPEATS) & (far | (missed > RESOLUTION)) | dead
        far |= stuck_q & ~dead
        self._stopped |= stuck_q & (self._still > 0)
        repeats = (self._still > 0) & self._stopped
        self._error = error
        self._lost = np.where(finite & ~stuck_q, 0, self._lost + step)
        trust_q = finite & ~stuck_q & (self._slipping == 0)
        expected[0] = centre + np.where(trust_q, self._gain * error, 0.0)
        expected[0] += dt * np.where(dead, self.coast, v)
        expected[1] = v
        rate = self._rebuild(q, trust_q, anew, v)
        contrary = trust_q & ((self._waiting > 0) | far) & (v * rate < 0.0) & (np.abs(v - rate) > CONTRARY)
        self._contrary = np.where(contrary, self._contrary + 1, 0)
        return JudgedMotion(
            position=np.where(trust_q, q, centre),
            velocity=np.where(far & ~stuck_q, rate, v),
            rate=rate,
            suspect=~finite | (self._slipping > 0) | (self._waiting > 0) | far | dead | repeats,
            rebuilt=far & ~dead,
            missing=~finite,
            dead=stuck_q,
            disagree=far & ~stuck_q,
            slipped=self.offset != 0.0,
            contrary=self._contrary >= self.contradicted,
            still=self._still > 0,
        )

    def _note_slips(self, error: Array, usable: Array) -> None:
        """Positions that jump are watched; where they stay, their zero has moved."""
        begins = usable & (np.abs(error - self._error) > self._slip) & (np.abs(error) > self._slip)
        stays = usable & (self._slipping > 0) & (np.abs(error - self._slip_error) < self.far)
        self._slip_error = np.where(begins & ~stays, error, self._slip_error)
        self._slipping = np.where(stays, self._slipping + 1, np.where(begins, 1, 0))
        moved = self._slipping >= self._settled
        if moved.any():
            self.offset[moved] += self._slip_error[moved]
            self.offset[np.abs(self.offset) < self.far] = 0.0
            self._slipping[moved] = 0

    def _note_repeats(self, report: Array, sent: Array) -> Array:
        """Which joints repeat themselves although they must move, (..., n)."""
        same_q, same_v = report[0] == self._raw[0], report[1] == self._raw[1]
        self._raw[:] = report[:2]
        self._same_q = np.where(same_q, self._same_q + 1, 0)
        self._same_v = np.where(same_v, self._same_v + 1, 0)
        still = same_q & same_v
        begins = still & (self._still == 0)
        self._start_torque = np.where(begins, sent, self._start_torque)
        leapt = self._leapt == 1  # a second leap takes the first one back: a coarse number flickers
        stopped = (self._waiting > 0) | leapt
        self.coast = np.where(begins & ~stopped, report[1], self.coast)
        self._stopped = np.where(begins, stopped | (self._restless > RESTLESS), self._stopped)
        self._restless -= REPEATED / RESTLESS_MEMORY * begins
        self._still = np.where(still, self._still + 1, 0)
        # What the torque would have done to it meanwhile; once it is known to be dead, `drive` says it.
        lasts, more = self._still >= self._still_ticks, sent - self._start_torque
        faster = np.where(np.isfinite(more), self._dt / self.inertia * more, 0.0)
        self.drive(np.where(still & ~(lasts & self._stopped), faster, 0.0))
        self._stopped |= lasts & (np.abs(more) > self.held)
        return lasts & self._stopped

    def drive(self, change: Array) -> None:
        """Joints that nobody sees have changed their velocities by so much (..., n) [rad/s]."""
        self.coast = np.minimum(np.maximum(self.coast + change, -self._fastest), self._fastest)

    def _rebuild(self, q: Array, trusted: Array, anew: Array, v: Array) -> Array:
        """Velocities from positions alone, (..., n) [rad/s]."""
        position, velocity = self._rebuilt
        ahead = position + self._dt * velocity
        missed = np.where(trusted, q - ahead, 0.0)
        self._rebuilt[0] = np.where(anew, q, ahead + self._alpha * missed)
        self._rebuilt[1] = np.where(anew, v, velocity + self._beta * missed)
        return self._rebuilt[1]
