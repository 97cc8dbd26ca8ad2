"""How something is pressed and moved: what a hand's and a humanoid's policy have in common."""

from __future__ import annotations

from dataclasses import dataclass

GRAVITY = 9.81
"""[m/s²]"""


@dataclass(frozen=True, kw_only=True)
class GripSettings:
    """Forces, gains and times of a grip; each policy has its own numbers."""

    grip: float = 2.5
    """Normal force of the thumb, or of a hand (the public code keeps it between 1 and 3) [N]."""
    low: float
    """Stiffness across the motion [N/m]."""
    high: float
    """Stiffness along the motion [N/m]."""
    damping: float
    """Stiff servos with a rigid object between them need more than critical damping [N·s/m]."""
    open: float
    """Distance from the object before they close on it [m]."""
    close: float
    """Time to close [s]."""
    squeeze: float = 1.0
    """Time over which the force comes [s]."""
    begin: float = 4.0
    """When the object begins to move [s]."""
    follow: float = 2.0
    """Gain on the object's pose error, as what touches it tells [1/s]."""
    depth: float = 0.0
    """How far into the object position control is sent [m]."""
