"""Times and limits of the supervisor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class SupervisorSettings:
    """Settings of the supervisor."""

    enable_ramp: float = 0.05
    """Time over which the correction fades in after a start or a reset [s]."""
    recovery: float = 0.1
    """The same after it had to fade [s]."""
    bridge: float = 0.02
    """How long the last correction is held over reports that cannot be used [s]."""
    fade: float = 0.1
    """Time over which the correction then fades; also a stale estimate's, or a failing adapter's [s]."""
    residual_share: float = 0.8
    """Largest correction of a joint, as a share of its torque limit."""
    residual_limit: tuple[float, ...] = ()
    """Largest correction of each joint instead [N·m]."""
    rate_time: float = 0.005
    """A correction may grow from nothing to its limit in this time, no faster [s]."""
    rate_limit: tuple[float, ...] = ()
    """Fastest change of each joint's correction instead [N·m/s]."""
    stale_after: float = 0.5
    """A belief that has not been renewed for so long fades out; never less than ten of the adapter's periods [s]."""
    position_margin: float = 0.3
    """How far beyond its position limits a joint may be before the correction fades; at twice that it is off [rad]."""
    velocity_margin: float = 1.5
    """How many times its velocity limit a joint may have before the correction fades; at 4/3 of that it is off."""
    hold: float = 0.05
    """How long the last good nominal torque stands in for one that is not finite, before gravity alone does [s]."""
    torque_from: Literal["report", "sent", "other"] = "report"
    """What the adapter takes for the applied torque: the robot's report, checked against what was sent; (of a robot
    that reports none) what was sent; or the report as it is, where somebody else drives and we only watch."""
    torque_delay: float = 0.008
    """Longest delay of torque reports; never less than five ticks [s]."""
    trip_after: float = 2.0
    """A joint whose correction is at a limit for so long is no longer corrected [s]."""
    rearm: float = 5.0
    """... until the correction asked for has stayed within its limits for so long [s]."""
    max_contact_force: float | None = None
    """How much harder than the nominal command the corrected robot may press on something rigid [N]; default: the
    weight of 4.5 of the largest payloads of the robot's profile; infinite: as hard as the other limits allow."""
    shadow: bool = False
    """Compute, score and log the correction, but send the nominal torque."""
    log_ticks: int = 0
    """Keep the corrections and codes of so many last ticks."""
