"""What compliance has to say about a tick: a code for each reason why something was not used as it came."""

from __future__ import annotations

from enum import IntFlag


class ComplyCode(IntFlag):
    """Codes of one trial at one tick; several may hold at once, and 0 is a clean tick."""

    OK = 0
    MISSING = 1
    """A motor's report is missing or not finite: its joint is left out of the estimate."""
    FROZEN = 2
    """A motor's report no longer changes while its joint moves: the joint is left out."""
    UNEXPLAINED = 4
    """No wrench at the sites explains the joint torques: a swapped sign, a touch elsewhere."""
    SATURATED = 8
    """A motor's voltage is at its end."""
    SAG = 16
    """The bus voltage is well below its nominal value."""
    SINGULAR = 32
    """The arm hardly feels one direction: what the estimate says there is the prior."""
    STICTION = 64
    """A joint rests, so friction hides part of the torque."""
    DRIFT = 128
    """The offset that the tare found is larger than friction and noise explain."""
    STALE = 256
    """The command is old: the robot yields with a soft spring where it is."""
    GAIN = 512
    """A stiffness or damping was not positive definite: the last good one stands."""
    REACH = 1024
    """The pose cannot be reached within the joint limits."""
    SPEED = 2048
    """A velocity or acceleration was clamped."""
    TANK = 4096
    """The energy tank is empty: what would inject energy is scaled down."""
    FORCE = 8192
    """The commanded force was capped by the tipping limit."""
    IMU = 16384
    """The torso's orientation no longer changes or is not finite: balance goes on without feedback."""
    BAD_STATE = 32768
    """The robot's report is not finite: the last command is held."""
    BAD_COMMAND = 65536
    """The command was not finite: the last good one stands."""
    COLLISION = 131072
    """A step was shortened because links would touch each other."""

    @classmethod
    def names(cls, code: int) -> list[str]:
        """The reasons in a code, in words."""
        return [flag.name.lower().replace("_", " ") for flag in cls if flag & code and flag.name]


DOUBTED = ComplyCode.UNEXPLAINED | ComplyCode.SINGULAR | ComplyCode.MISSING | ComplyCode.FROZEN | ComplyCode.DRIFT
"""Codes under which a wrench should not be trusted."""
