"""One world of the worlds bench, as data: what is hidden, what moves, touches, changes and lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hidden = Literal["usual", "nothing", "twice"]
FAMILIES = (
    *("today", "touch", "walls", "payload", "drive", "friction"),
    *("report", "clock", "ranges", "motion", "geometry"),
)
"""Kinds of worlds, in the order of the table."""
TRAINED = ("today", "touch", "payload", "drive", "friction")
"""Those of which networks on board have seen some: short pushes and the five effects all of them; lasting touch,
changing payloads and weak drives that of `default` alone."""


@dataclass(frozen=True, kw_only=True)
class BenchWorld:
    """Everything about a world but the robot; each word is explained where it is looked up."""

    name: str
    about: str
    """One line for the table's reader."""
    family: str
    duration: float = 16.0
    """[s]"""
    motion: str = "sines"
    """Of `motions`: what the robot is asked to do."""
    hidden: Hidden = "usual"
    """What the target hides: the profile's ranges, nothing, or twice those ranges."""
    touch: str = ""
    """Of `touches`: what pushes robot and ideal robot alike."""
    change: str = ""
    """Of `changes`: what changes about the target while it runs."""
    fault: str = ""
    """Of `reports`: how the target's reports are wrong."""
    body: str = ""
    """Of `bodies`: how the target's tree differs from the ideal one's."""
    effect: str = ""
    """Of `simulate.effects` or "position-friction": what no parameter describes."""
    timestep: float = 1e-3
    """Control period [s]."""

    @property
    def trained(self) -> bool:
        """Whether a network on board was trained on worlds of this kind."""
        return self.family in TRAINED

    @property
    def forces(self) -> bool:
        """Whether there is something solid whose contact force is measured."""
        return self.touch.startswith("wall")
