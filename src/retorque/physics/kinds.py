"""The kinds of parameters that can be free, and the chart of each: how its numbers are read, written and bounded."""

from __future__ import annotations

from typing import Literal

import numpy as np

from retorque.physics.inertia import from_vector, to_vector
from retorque.physics.log_cholesky import NAMES as CHART_NAMES
from retorque.physics.log_cholesky import UNITS as CHART_UNITS
from retorque.physics.log_cholesky import from_log_cholesky, log_cholesky, log_cholesky_jacobian
from retorque.physics.parameters import PAIRS, SLOPE_OF_WIDTH, Parameters
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.work.array import Array

INERTIAL_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
INERTIAL_UNITS = ("kg", *["kg·m"] * 3, *["kg·m²"] * 6)
UNITS = {
    "armature": "kg·m²",
    "torque_scale": "",
    "torque_bias": "N·m",
    "dead_zone": "N·m",
    "viscous": "N·m·s/rad",
    "friction_amplitude": "N·m",
    "friction_slope": "log s/rad",
    "friction_width": "rad/s",
    "friction_shift": "rad/s",
    "damping": "N·m·s/rad",
    "coulomb": "N·m",
    "stiffness": "N·m/rad",
    "rest_position": "rad",
}
Values = dict[str, Array]
"""The arrays of parameters that are being put together, by name."""


class Kind:
    """A number, or a few, of every joint: a field of `Parameters` as it is."""

    owner: Literal["joint", "link", "payload"] = "joint"
    both = False
    """One number for both directions."""

    def __init__(self, name: str, field: str = ""):
        self.name, self.field = name, field or name

    def owners(self, robot: Robot) -> tuple[str, ...]:
        """Whose it can be."""
        if self.owner == "payload":
            return ("",)
        return robot.joint_names if self.owner == "joint" else tuple(link.name for link in robot.moving_links)

    def has(self, base: Parameters) -> Array:
        """(links,) which links have it."""
        return np.ones(base.inertial.shape[-2], dtype=bool)

    def parts(self, base: Parameters) -> tuple[str, ...]:
        """A name for each column."""
        if self.field in PAIRS and not self.both:
            return (f"{self.name} forward", f"{self.name} backward")
        return (self.name,)

    def units(self, base: Parameters) -> tuple[str, ...]:
        return (UNITS[self.name],) * len(self.parts(base))

    def read(self, robot: Robot, p: Parameters) -> Array:
        """The numbers of all owners, (..., owners, width)."""
        values = getattr(p, self.field)
        values = values if values.ndim > len(p.trials) + 1 else values[..., None]
        return np.mean(values, axis=-1, keepdims=True) if self.both else values

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        """Put the numbers (..., owners, width) of some owners in."""
        own = values[self.field]
        scalar = own.ndim == part.ndim - 1
        part = np.repeat(part, 2, axis=-1) if self.both else part[..., 0] if scalar else part
        if part.shape == own.shape:
            values[self.field] = part
            return
        own = own.copy()
        own[(..., owners) if scalar else (..., owners, slice(None))] = part
        values[self.field] = own

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        """The smallest and the largest numbers of all owners, (owners, width) each."""
        low, high = self._range(robot, profile)
        one = np.ones((robot.n, len(self.parts(base))))
        return one * np.reshape(low, (-1, 1)), one * np.reshape(high, (-1, 1))

    def _range(self, robot: Robot, profile: Profile | None) -> tuple[Array | float, Array | float]:
        if self.field == "rest_position":
            return robot.lower, robot.upper
        if self.field == "stiffness" or profile is None:
            free = self.field in ("torque_bias", "friction_shift")
            return (-np.inf if free else 0.0), np.inf
        if self.field == "armature":
            return profile.armature_min, profile.armature_max
        if self.field == "torque_scale":
            return profile.torque_scale
        if self.field == "torque_bias":
            spread = profile.bias_max * (1.0 + profile.bias_difference)
            return -spread, spread
        if self.field == "friction_shift":
            return -1.5 * profile.friction_shift, 1.5 * profile.friction_shift
        largest = {
            "dead_zone": profile.dead_zone_max,
            "viscous": profile.viscous_max,
            "friction_amplitude": profile.friction_max,
        }
        return 0.0, largest[self.field]

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        """Derivative of the owners' ten numbers by its columns, (..., owners, 10, width), where it is an inertia."""
        return None


class BothDirections(Kind):
    """A field with a value for each direction, as one number for both."""

    both = True


class Slope(Kind):
    """The logarithm of the sigmoid's slope."""

    def read(self, robot: Robot, p: Parameters) -> Array:
        return np.log(p.friction_slope)

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        super().write(robot, values, owners, np.exp(part))

    def _range(self, robot: Robot, profile: Profile | None) -> tuple[Array | float, Array | float]:
        low, high = _slopes(profile)
        return np.log(low), np.log(high)


class Width(Kind):
    """The velocity width of the sigmoid, 4.4 / slope."""

    def read(self, robot: Robot, p: Parameters) -> Array:
        return SLOPE_OF_WIDTH / p.friction_slope

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        super().write(robot, values, owners, SLOPE_OF_WIDTH / part)

    def _range(self, robot: Robot, profile: Profile | None) -> tuple[Array | float, Array | float]:
        low, high = _slopes(profile)
        return SLOPE_OF_WIDTH / high, SLOPE_OF_WIDTH / low


def _slopes(profile: Profile | None) -> tuple[float, float]:
    if profile is None:
        return 1e-3, 1e6  # flat over any velocity, to steeper than any encoder sees
    steep = 10.0**profile.friction_asymmetry
    return SLOPE_OF_WIDTH / profile.friction_width[1] / steep, SLOPE_OF_WIDTH / profile.friction_width[0] * steep


class Coefficients(Kind):
    """The coefficients of the friction's linear terms."""

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return base.friction.names

    def units(self, base: Parameters) -> tuple[str, ...]:
        return base.friction.units

    def read(self, robot: Robot, p: Parameters) -> Array:
        return p.friction_coefficients

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        low = np.where(base.friction.nonnegative, 0.0, -np.inf)
        return np.tile(low, (robot.n, 1)), np.full((robot.n, len(low)), np.inf)


class Inertial(Kind):
    """Ten numbers of a link as they are: linear, and free to be impossible."""

    owner: Literal["joint", "link", "payload"] = "link"

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return INERTIAL_NAMES

    def units(self, base: Parameters) -> tuple[str, ...]:
        return INERTIAL_UNITS

    def read(self, robot: Robot, p: Parameters) -> Array:
        return p.inertial

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        whole = np.full((len(self.owners(robot)), len(self.parts(base))), np.inf)
        return -whole, whole

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return np.broadcast_to(np.eye(10), (*p.inertial.shape, 10))


def _with_mass(base: Parameters) -> Array:
    """(links,) which links have a mass."""
    return np.all(base.inertial[..., 0] > 0.0, axis=tuple(range(base.inertial.ndim - 2)))


class MassScale(Inertial):
    """A link's mass as a multiple of the card's; its inertia grows along and its centre stays."""

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return (self.name,)

    def units(self, base: Parameters) -> tuple[str, ...]:
        return ("",)

    def read(self, robot: Robot, p: Parameters) -> Array:
        own = np.array([link.mass for link in robot.moving_links])
        there = own > 0.0
        return np.where(there, p.inertial[..., 0] / np.where(there, own, 1.0), 1.0)[..., None]

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        inertial = values["inertial"].copy()
        own = np.array([robot.moving_links[k].mass for k in owners])
        now = inertial[..., owners, 0]
        there = now > 0.0
        times = np.where(there, self._mass(part[..., 0], own) / np.where(there, now, 1.0), 1.0)
        inertial[..., owners, :] *= times[..., None]
        values["inertial"] = inertial

    def _mass(self, number: Array, own: Array) -> Array:
        return number * own

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        low, high = (0.0, np.inf) if profile is None else profile.mass_scale
        shape = (len(self.owners(robot)), 1)
        return np.full(shape, low), np.full(shape, high)

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return (p.inertial / self.read(robot, p))[..., None]


class Mass(MassScale):
    """The logarithm of a link's mass."""

    def has(self, base: Parameters) -> Array:
        return _with_mass(base)

    def units(self, base: Parameters) -> tuple[str, ...]:
        return (CHART_UNITS[0],)

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return (CHART_NAMES[0],)

    def read(self, robot: Robot, p: Parameters) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(p.inertial[..., :1])

    def _mass(self, number: Array, own: Array) -> Array:
        return np.exp(number)

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        if profile is None:
            return super(MassScale, self).bounds(robot, base, profile)
        with np.errstate(divide="ignore"):
            own = np.log([[link.mass] for link in robot.moving_links])
        return own + np.log(profile.mass_scale[0]), own + np.log(profile.mass_scale[1])

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return p.inertial[..., None]


class Centre(Inertial):
    """A link's centre of mass; mass and inertia about it stay."""

    def has(self, base: Parameters) -> Array:
        return _with_mass(base)

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return CHART_NAMES[1:4]

    def units(self, base: Parameters) -> tuple[str, ...]:
        return CHART_UNITS[1:4]

    def read(self, robot: Robot, p: Parameters) -> Array:
        return from_vector(p.inertial)[1]

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        inertial = values["inertial"].copy()
        mass, _, about = from_vector(inertial[..., owners, :])
        inertial[..., owners, :] = to_vector(mass, part, about)
        values["inertial"] = inertial

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        if profile is None:
            return super().bounds(robot, base, profile)
        own = np.array([link.centre for link in robot.moving_links])
        return own - profile.centre_offset, own + profile.centre_offset

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return centre_change(p.inertial)


class Spread(Inertial):
    """How a link's mass is spread about its centre (log-Cholesky): unbounded, and always possible."""

    def has(self, base: Parameters) -> Array:
        return _with_mass(base)

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return CHART_NAMES[4:]

    def units(self, base: Parameters) -> tuple[str, ...]:
        return CHART_UNITS[4:]

    def read(self, robot: Robot, p: Parameters) -> Array:
        out = np.zeros((*p.inertial.shape[:-1], 6))
        there = self.has(p)
        out[..., there, :] = log_cholesky(p.inertial[..., there, :])[..., 4:]
        return out

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        inertial = values["inertial"].copy()
        mass, centre, _ = from_vector(inertial[..., owners, :])
        chart = np.concatenate([np.log(mass)[..., None], centre, part], axis=-1)
        inertial[..., owners, :] = from_log_cholesky(chart)
        values["inertial"] = inertial

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        out = np.zeros((*p.inertial.shape, 6))
        there = self.has(p)
        out[..., there, :, :] = log_cholesky_jacobian(log_cholesky(p.inertial[..., there, :]))[..., 4:]
        return out


class PayloadMass(Kind):
    """The payload's mass; a body keeps its shape, nothing becomes a point at the mount."""

    owner: Literal["joint", "link", "payload"] = "payload"

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return (self.name,)

    def units(self, base: Parameters) -> tuple[str, ...]:
        return ("kg",)

    def read(self, robot: Robot, p: Parameters) -> Array:
        return p.payload[..., None, :1]

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        mass = part[..., 0, :]
        values["payload"] = mass * _per_kilogram(values["payload"])

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        low, high = (0.0, np.inf) if profile is None else profile.payload_mass
        return np.array([[low]]), np.array([[high]])

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return _per_kilogram(p.payload)[..., None, :, None]


class PayloadCentre(PayloadMass):
    """The payload's centre of mass in the mount's frame; inertia about it stays."""

    def parts(self, base: Parameters) -> tuple[str, ...]:
        return tuple(f"{self.name} {axis}" for axis in "xyz")

    def units(self, base: Parameters) -> tuple[str, ...]:
        return ("m",) * 3

    def read(self, robot: Robot, p: Parameters) -> Array:
        return p.payload_centre[..., None, :]

    def write(self, robot: Robot, values: Values, owners: Array, part: Array) -> None:
        mass, _, about = from_vector(values["payload"])
        values["payload"] = to_vector(mass, part[..., 0, :], about)

    def bounds(self, robot: Robot, base: Parameters, profile: Profile | None) -> tuple[Array, Array]:
        size = np.inf if profile is None else profile.payload_centre
        return np.full((1, 3), -size), np.full((1, 3), size)

    def inertial_change(self, robot: Robot, p: Parameters) -> Array | None:
        return centre_change(p.payload)[..., None, :, :]


def _per_kilogram(payload: Array) -> Array:
    """(..., 10) of one kilogram of the payload; a point at the mount where there is none."""
    there = payload[..., :1] > 0.0
    return np.where(there, payload / np.where(there, payload[..., :1], 1.0), np.eye(10)[0])


def centre_change(vector: Array) -> Array:
    """Derivative of ten numbers (..., 10) by the centre of mass, inertia about it kept, (..., 10, 3)."""
    moment = vector[..., 1:4]
    out = np.zeros((*vector.shape, 3))
    for axis in range(3):
        out[..., 1 + axis, axis] = vector[..., 0]
        others = [k for k in range(3) if k != axis]
        # I = I_c + m (c·c 1 - c cᵀ): squares on the other two diagonals, products beside.
        for k in others:
            out[..., _place(k, k), axis] = 2.0 * moment[..., axis]
            out[..., _place(axis, k), axis] = -moment[..., k]
    return out


def _place(row: int, column: int) -> int:
    """Where an entry of the inertia is among the ten."""
    return ((4, 5, 7), (5, 6, 8), (7, 8, 9))[row][column]


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *(Kind(name) for name in PAIRS if name != "friction_slope"),
        *(Kind(name) for name in ("armature", "stiffness", "rest_position")),
        Slope("friction_slope"),
        Width("friction_width", "friction_slope"),
        BothDirections("damping", "viscous"),
        BothDirections("coulomb", "friction_amplitude"),
        Coefficients("friction", "friction_coefficients"),
        Inertial("inertial"),
        Mass("mass", "inertial"),
        MassScale("mass_scale", "inertial"),
        Centre("centre", "inertial"),
        Spread("inertia", "inertial"),
        PayloadMass("payload_mass", "payload"),
        PayloadCentre("payload_centre", "payload"),
    )
}
"""Every kind by name."""
