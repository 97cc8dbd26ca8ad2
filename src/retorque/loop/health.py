"""What a tick was worth: a code for every reason why a sample or a correction was not used as it came."""

from __future__ import annotations

from enum import IntFlag


class Health(IntFlag):
    """Codes of one trial at one tick; several may hold at once, and 0 is a clean tick."""

    OK = 0
    RAMP = 1
    """The correction is being faded in."""
    RESIDUAL_LIMIT = 2
    """A joint's correction was cut to its limit."""
    RATE_LIMIT = 4
    """A joint's correction wanted to change faster than allowed."""
    TORQUE_LIMIT = 8
    """The torque was cut to the robot's limit."""
    BAD_CORRECTION = 16
    """The adapter's torque was not finite: the nominal torque went out."""
    STALE = 32
    """The estimate has not been renewed for too long: the correction fades out."""
    BAD_STATE = 64
    """The robot's report was not finite."""
    OUT_OF_RANGE = 128
    """A joint is reported beyond its position limits or faster than its velocity limit, margins included."""
    BAD_NOMINAL = 256
    """The controller's torque was not finite: the last good one, then gravity alone, went out; or it was worked out
    from reports that are known to be wrong: what brakes the robot went out."""
    BAD_CLOCK = 512
    """The report's time repeated, ran backwards or was not finite: it is no new sample."""
    GAP = 1024
    """Ticks were missed before this report."""
    FROZEN = 2048
    """A joint has stopped reporting: its numbers repeat although it moves, or must."""
    SATURATED = 4096
    """The robot reports a torque beyond its limit."""
    FAULT = 8192
    """The adapter raised an error: the nominal torque went out."""
    SKIPPED = 16384
    """The estimator left samples out of its last update."""
    SURPRISED = 32768
    """The estimator saw what its model cannot explain (contact, an unknown effect)."""
    TORQUE_REPORT = 65536
    """A joint does not report the torque that it was sent (zero, scaled, turned round): the sent one stands for it."""
    VELOCITY_REPORT = 131072
    """A joint's velocity is not the rate of its position."""
    SLIPPED = 262144
    """A joint's position jumped as no joint can, and stayed there: its encoder slipped."""
    TRIPPED = 524288
    """A joint's correction was at a limit for seconds: it is off."""
    FORCE_LIMIT = 1048576
    """The correction was cut so that the robot does not press harder than promised."""

    @classmethod
    def names(cls, code: int) -> list[str]:
        """The reasons in a code, in words."""
        return [flag.name.lower().replace("_", " ") for flag in cls if flag & code and flag.name]
