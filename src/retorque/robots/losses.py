"""What a card knows of a robot's joints beyond rigid bodies: friction, drive, and how sure the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

Family = Literal["terms", "sigmoid"]
TERMS = ("coulomb", "presliding", "viscous", "stribeck", "saturating", "offset")
"""What each term of the family "terms" begins with; see `physics.friction.Friction`."""
SIGMOID = tuple(f"{stem} {side}" for stem in ("viscous", "amplitude", "slope", "shift")
                for side in ("forward", "backward"))  # fmt: skip
"""The terms of the family "sigmoid" (TAM, B.2 and B.3)."""
LARGEST = 1e6
"""No friction, gain or bias of a robot's joint is larger than this, in any unit."""


def unit_of(term: str) -> str:
    """The unit of a friction term's coefficient."""
    units = {"viscous": "N·m·s/rad", "slope": "s/rad", "shift": "rad/s"}
    return units.get(term.split(" ")[0], "N·m")


@dataclass(frozen=True, kw_only=True)
class JointFriction:
    """The friction of every joint, as the sum of terms times coefficients."""

    family: Family = "terms"
    """terms: functions of velocity that are linear in the coefficients; sigmoid: those of the TAM paper (B.3)."""
    terms: tuple[str, ...]
    """One name a coefficient, such as "coulomb", "viscous", "presliding 0.0001" or "offset"."""
    coefficients: Array
    """(n, terms); units as `units`."""
    deviation: Array | None = None
    """(n, terms) standard deviations, where known."""
    limit: float = 0.02
    """Velocity below which Coulomb friction is proportional to velocity [rad/s]."""

    @property
    def units(self) -> tuple[str, ...]:
        """One unit a coefficient."""
        return tuple(unit_of(term) for term in self.terms)

    def _sum(self, *stems: str) -> Array:
        """(n,) the sum of the coefficients of some kinds of terms, the mean of both directions."""
        total = np.zeros(len(self.coefficients))
        for term, column in zip(self.terms, self.coefficients.T, strict=True):
            words = term.split(" ")
            if words[0] in stems:
                total += (0.5 if words[-1] in ("forward", "backward") else 1.0) * column
        return total

    @property
    def viscous(self) -> Array:
        """(n,) what a format with one damping coefficient can say [N·m·s/rad]."""
        return self._sum("viscous")

    @property
    def coulomb(self) -> Array:
        """(n,) friction of fast motion without the viscous part: what a format with one dry friction can say [N·m]."""
        if self.family == "sigmoid":  # it rises from half of its height at rest to all of it
            return 0.5 * self._sum("amplitude")
        return self._sum("coulomb", "presliding", "saturating")


@dataclass(frozen=True, kw_only=True)
class Drive:
    """What lies between a command and the torque at the joint, for (forward, backward)."""

    gain: Array
    """(n, 2) torque per commanded torque, by the sign of the command."""
    bias: Array
    """(n, 2) torque added, by the sign of the velocity [N·m]."""
    dead_zone: Array
    """(n, 2) command lost before the drive acts, by the sign of the command [N·m]."""


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Standard deviations of a card's numbers; those that are felt only in sums with others count as exact."""

    inertial: Array
    """(moving links, 10) of m, m·c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the link's origin [kg, kg·m, kg·m²]."""
    armature: Array
    """(n,) [kg·m²]"""


def check_friction(friction: JointFriction, joints: int, where: str) -> None:
    """Refuse friction that cannot be, in one sentence."""
    if friction.family not in ("terms", "sigmoid"):
        raise unknown("family of friction", friction.family, ("terms", "sigmoid"))
    if friction.family == "sigmoid" and friction.terms != SIGMOID:
        raise RetorqueError(f"{where}: sigmoid friction has, in order, the terms {', '.join(SIGMOID)}; correct them")
    for term in friction.terms if friction.family == "terms" else ():
        if term.split(" ")[0] not in TERMS:
            raise RetorqueError(f"{where}: {unknown('friction term', term, TERMS)}")
    _check("friction coefficients", friction.coefficients, (joints, len(friction.terms)), where)
    free = [term.split(" ")[0] in ("offset", "shift") for term in friction.terms]
    if np.any(friction.coefficients[:, ~np.array(free, dtype=bool)] < 0.0):
        raise RetorqueError(f"{where}: a friction coefficient is negative; friction never drives, so correct its sign")
    if friction.deviation is not None:
        _check("friction deviations", friction.deviation, friction.coefficients.shape, where, positive=True)
    if not 0.0 < friction.limit < LARGEST:
        raise RetorqueError(f"{where}: the friction's limit is {friction.limit}; it must be a velocity above zero")


def check_drive(drive: Drive, joints: int, where: str) -> None:
    """Refuse a drive that cannot be, in one sentence."""
    for name in ("gain", "bias", "dead_zone"):
        _check(f"drive {name}", getattr(drive, name), (joints, 2), where, positive=name != "bias")
    if np.any(drive.gain == 0.0):
        raise RetorqueError(f"{where}: a drive gain is zero, so the joint cannot be moved; give a positive gain")


def check_uncertainty(uncertainty: Uncertainty, links: int, joints: int, where: str) -> None:
    """Refuse standard deviations that cannot be, in one sentence."""
    _check("link uncertainties", uncertainty.inertial, (links, 10), where, positive=True)
    _check("armature uncertainties", uncertainty.armature, (joints,), where, positive=True)


def _check(what: str, values: Array, shape: Sequence[int], where: str, *, positive: bool = False) -> None:
    if values.shape != tuple(shape):
        size = " x ".join(str(count) for count in shape)
        raise RetorqueError(f"{where}: the {what} must be {size} numbers, one row a joint or link; correct them")
    if not np.all(np.abs(values) <= LARGEST) or (positive and np.any(values < 0.0)):
        sign = "zero or more" if positive else "finite"
        raise RetorqueError(f"{where}: the {what} must be {sign} and at most {LARGEST:g}; correct them")
