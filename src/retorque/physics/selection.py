"""Which of a robot's parameters are free: names on one side, a bounded vector on the other.

A name is a kind, for every link or joint that has it, or a kind and one owner: "armature", "mass link5". The vector
holds kind after kind in the order named, each owner after owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retorque.physics.inertia import moved
from retorque.physics.kinds import KINDS, Kind
from retorque.physics.parameters import ARRAYS, PAIRS, Parameters, mount
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

DRAWN_OF_JOINT = ("mass_scale", "centre", "armature", *PAIRS)
DRAWN_OF_PAYLOAD = ("payload_mass", "payload_centre")
DRAWN = (*DRAWN_OF_JOINT, *DRAWN_OF_PAYLOAD)
"""All that `Parameters.sample` draws."""


@dataclass(frozen=True)
class Block:
    """One kind of parameter, of one or more owners."""

    kind: Kind
    owners: Array
    """Indices of the links or joints."""
    names: tuple[str, ...]
    units: tuple[str, ...]
    width: int
    """Columns an owner."""


class Selection:
    """Chosen parameters of a robot as a vector (..., size), and a vector as parameters.

    Args:
        robot: the ideal robot.
        names: kinds, or kinds with an owner; see `kinds.KINDS`.
        base: what is not chosen stays as here; default: the ideal robot.
        profile: gives the bounds; without it only those of nature hold.
    """

    def __init__(
        self, robot: Robot, names: Sequence[str], base: Parameters | None = None, profile: Profile | None = None
    ):
        self.robot, self.profile = robot, profile
        self.base = Parameters.ideal(robot) if base is None else base
        self.blocks = tuple(self._block(name) for name in names)
        self.names = tuple(name for block in self.blocks for name in block.names)
        self.units = tuple(unit for block in self.blocks for unit in block.units)
        self.size = len(self.names)
        twice = [name for k, name in enumerate(self.names) if name in self.names[:k]]
        if twice:
            raise RetorqueError(f"'{twice[0]}' is selected twice; name it once")

    def _block(self, name: str) -> Block:
        stem, _, owner = name.partition(" ")
        if stem not in KINDS:
            raise unknown("kind of parameter", stem, KINDS)
        kind = KINDS[stem]
        everyone = kind.owners(self.robot)
        if owner and owner not in everyone:
            raise unknown(kind.owner, owner, everyone)
        which = np.array([k for k, one in enumerate(everyone) if not owner or one == owner])
        which = which[kind.has(self.base)[which]] if kind.owner == "link" else which
        if len(which) == 0:
            raise RetorqueError(f"no {kind.owner} of robot '{self.robot.name}' has a '{stem}'; leave it out")
        parts = kind.parts(self.base)
        labels = tuple(f"{part} {everyone[k]}".strip() for k in which for part in parts)
        return Block(kind, which, labels, tuple(kind.units(self.base)) * len(which), len(parts))

    def split(self, vector: Array) -> list[Array]:
        """The vector as one array (..., owners, width) a block."""
        out, start = [], 0
        for block in self.blocks:
            size = len(block.names)
            part = vector[..., start : start + size]
            out.append(part.reshape(*vector.shape[:-1], len(block.owners), block.width))
            start += size
        return out

    def to_vector(self, parameters: Parameters) -> Array:
        """The chosen numbers of some parameters, (..., size)."""
        lead = parameters.trials
        found = [block.kind.read(self.robot, parameters)[..., block.owners, :] for block in self.blocks]
        return np.concatenate([part.reshape(*lead, -1) for part in found], axis=-1)

    def apply(self, vector: Array) -> Parameters:
        """The parameters of a vector (..., size), the base's where not chosen; plain kinds keep the number type."""
        lead = vector.shape[:-1]
        values = {}
        for name in ARRAYS:
            own = getattr(self.base, name)
            values[name] = np.broadcast_to(own, (*lead, *own.shape[len(self.base.trials) :]))
        for block, part in zip(self.blocks, self.split(vector), strict=True):
            block.kind.write(self.robot, values, block.owners, part)
        return self.base.with_arrays(values)

    @cached_property
    def lower(self) -> Array:
        """(size,) the smallest that the profile, or nature, allows."""
        return self._bounds[0]

    @cached_property
    def upper(self) -> Array:
        """(size,)"""
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        both = [block.kind.bounds(self.robot, self.base, self.profile) for block in self.blocks]
        low, high = (
            np.concatenate([pair[side][block.owners].ravel() for block, pair in zip(self.blocks, both, strict=True)])
            for side in (0, 1)
        )
        return low, high

    def clip(self, parameters: Parameters) -> Parameters:
        """The same, the chosen numbers moved inside their bounds, the others as they are."""
        inside = np.clip(self.to_vector(parameters), self.lower, self.upper)
        return Selection(self.robot, self._asked, parameters, self.profile).apply(inside)

    @property
    def _asked(self) -> list[str]:
        """The selection in full, owner by owner."""
        return [
            f"{block.kind.name} {block.kind.owners(self.robot)[k]}".strip()
            for block in self.blocks
            for k in block.owners
        ]

    def inertial_jacobian(self, vector: Array) -> Array:
        """d `total_inertial` / d vector, (..., 10 links, size); what is no inertia has columns of zeros."""
        parameters = self.apply(vector)
        links = parameters.inertial.shape[-2]
        out = np.zeros((*vector.shape[:-1], links, 10, self.size))
        where, start = mount(self.robot), 0
        for block in self.blocks:
            span = block.kind.inertial_change(self.robot, parameters)
            for k in block.owners:
                columns = slice(start, start + block.width)
                start += block.width
                if span is None:
                    continue
                if block.kind.owner == "link":
                    out[..., k, :, columns] = span[..., k, :, :]
                elif where is not None:
                    index, rotation, origin = where
                    seen = moved(np.swapaxes(span[..., 0, :, :], -1, -2), rotation, origin)
                    out[..., index, :, columns] = np.swapaxes(seen, -1, -2)
        return out.reshape(*vector.shape[:-1], 10 * links, self.size)
