"""Velocity feedback: torque for the velocity that a robot lacks behind the ideal one."""

from __future__ import annotations

import numpy as np

from retorque.adapt.default.vibration import LONGEST, Vibration
from retorque.adapt.ideal_velocity import IdealVelocity, joint_inertia
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

GAIN, STIFF, MEMORY = 8.0, 4.0, 1.0
"""Torque for each rad/s that is lacking, times the joint's inertia at home [1/s]; how many times that where the joint
does not ring at all: it shakes those with springs and play; and how long what is lacking is remembered [s]."""
SILENT = 0.01
"""Velocity that is no ringing [rad/s]."""
PERIOD = 1e-3
"""Longest control period at which all of it counts [s]: accelerations summed over longer ones err as much more."""
MOST = 5.0
"""Largest torque [units]."""
SENT = 0.05
"""Time over which reported torques are compared with those asked for [s]."""
MARGIN = 0.1
"""A difference that says which of them were sent [units]."""
ANEW, COUNTS, ACTS = 0.0, 0.5, 1.0
"""What is lacking is forgotten, counted, or counted and fed back."""
IGNORED = 0.2
"""Corrections that were not sent for so long are not sent [s]: a ramp or a limit is over sooner."""


class VelocityFeedback:
    """What an estimate does not know yet shows as velocity that the robot lacks; fed back, it hardly shows any more.

    A joint counts only where its corrections are sent: where the reported torques stay nearer to the nominal ones (a
    supervisor that watches or has faded them out), there is nothing to follow.

    Args:
        robot: the ideal robot.
        trials: robots served at once.
        timestep: control period [s].
        unit: (n,) torque that counts as one [N·m].
    """

    remembered = ("_ideal", "_vibration", "_asked", "_nominal", "_errors", "_ignored", "torque")

    def __init__(self, robot: Robot, trials: int, timestep: float, unit: Array):
        self.gain = GAIN * min(1.0, PERIOD / timestep) * joint_inertia(robot)
        """(n,) least gain [N·m·s/rad]."""
        self.most = MOST * unit
        """(n,) largest torque [N·m]."""
        self.more = STIFF - 1.0 if timestep <= LONGEST else 0.0
        """How many times the least gain is added where a joint does not ring."""
        self.margin = MARGIN * unit
        """(n,) [N·m]"""
        self.share = min(1.0, timestep / SENT)
        """Of the newest report in the comparison of torques."""
        self._timestep = timestep
        self._ideal = IdealVelocity(robot, trials, timestep, MEMORY)
        self._vibration = Vibration((trials, robot.n), timestep, np.full(robot.n, SILENT))
        self._asked, self._nominal = np.zeros((2, trials, robot.n))
        self._errors = np.zeros((2, trials, robot.n))  # of reported torques to those asked for and the nominal ones
        self._ignored = np.zeros((trials, robot.n))  # how long [s]
        self.torque = np.zeros((trials, robot.n))
        """(trials, n) to add to the correction [N·m]."""

    def reset(self) -> None:
        """Begin anew with the next report."""
        self._ideal.reset()
        self._vibration.reset()
        for array in (self._asked, self._nominal, self._errors, self._ignored, self.torque):
            array[:] = 0.0

    def observe(self, state: State, follow: Array) -> None:
        """Take in a report one period after the last; `follow` (trials, 1): `ANEW`, `COUNTS` or `ACTS`."""
        errors = state.torque - np.stack([self._asked, self._nominal]) - self._errors
        self._errors += self.share * np.where(np.isfinite(errors), errors, 0.0)
        asked, nominal = np.abs(self._errors)
        self._ignored += self._timestep * (asked - nominal > self.margin)
        self._ignored[nominal - asked > self.margin] = 0.0
        counted = (follow > ANEW) & (self._ignored < IGNORED)
        missing = self._ideal.observe(state, counted)
        gain = self.gain * (1.0 + self.more * self._vibration.take(missing, counted))
        self.torque = np.where(follow >= ACTS, gain * self._ideal.hold(missing, self.most / gain), 0.0)

    def expect(self, acceleration: Array, nominal: Array, asked: Array) -> None:
        """So the ideal robot accelerates under the nominal torque, and so much is asked for instead, (trials, n)."""
        self._ideal.expect(acceleration)
        self._nominal[:], self._asked[:] = nominal, asked
