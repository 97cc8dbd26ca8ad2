"""A robot's parameters as the plain arrays that compiled code takes, and which of them are free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.friction import Friction
from retorque.physics.parameters import SLOPE_OF_WIDTH, Parameters
from retorque.physics.selection import Block, Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FIELDS = {
    "viscous": 0,
    "friction_amplitude": 2,
    "friction_slope": 4,
    "friction_shift": 6,
    "torque_bias": 8,
    "stiffness": 10,
    "rest_position": 11,
    "armature": 12,
    "friction_coefficients": 13,
}
"""Where each field of `Parameters` stands among a joint's numbers; pairs are (forward, backward)."""
TERM_KINDS = {"coulomb": 0, "presliding": 0, "viscous": 1, "stribeck": 2, "saturating": 3, "offset": 4}
"""Without a path, presliding friction acts as limited Coulomb friction."""
SIDES = {"forward": 1, "backward": -1}


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """One robot's parameters."""

    inertial: Array
    """(links, 10) payload included."""
    joints: Array
    """(n, 13 + terms) by `FIELDS`."""
    terms: Array
    """(terms, 2) int64: kind and side of each linear friction term."""
    constants: Array
    """(terms, 2) velocity of each term and the limit velocity of all [rad/s]."""

    @classmethod
    def of(cls, robot: Robot, p: Parameters) -> Numbers:
        """The arrays of some parameters; a drive is not among them: inputs are the torques that it gives."""
        joints = np.zeros((robot.n, FIELDS["friction_coefficients"] + p.friction.count))
        for name, start in FIELDS.items():
            value = getattr(p, name)
            value = value[:, None] if value.ndim == 1 else value
            joints[:, start : start + value.shape[1]] = value
        terms, constants = _terms(p.friction)
        return cls(inertial=p.total_inertial(robot), joints=joints, terms=terms, constants=constants)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which numbers each free parameter moves."""

    links: Array
    """(k, 2) int64: link and column."""
    tens: Array
    """(k, 10) derivative of that link's ten numbers."""
    joints: Array
    """(m, 3) int64: joint, place among its numbers, column."""
    weights: Array
    """(m,) derivative of that number."""

    @classmethod
    def of(cls, selection: Selection | None, vector: Array | None) -> Chosen:
        """What a selection chooses, at a vector (size,)."""
        entries: list[tuple[int, int, int]] = []
        weights: list[float] = []
        none = np.zeros((0, 2), dtype=np.int64)
        if selection is None:
            return cls(links=none, tens=np.zeros((0, 10)), joints=np.zeros((0, 3), dtype=np.int64), weights=np.zeros(0))
        at = selection.to_vector(selection.base) if vector is None else np.asarray(vector, dtype=float)
        column, inertial = 0, False
        for block, part in zip(selection.blocks, selection.split(at), strict=True):
            if block.kind.owner != "joint":
                inertial = True
                column += len(block.names)
                continue
            column = _joint_entries(block, part, column, entries, weights)
        links, tens = none, np.zeros((0, 10))
        if inertial:
            change = selection.inertial_jacobian(at).reshape(-1, 10, selection.size)
            where = np.argwhere(np.any(change != 0.0, axis=1))  # (k, 2)
            links, tens = where.astype(np.int64), change[where[:, 0], :, where[:, 1]]
        return cls(
            links=np.ascontiguousarray(links),
            tens=np.ascontiguousarray(tens),
            joints=np.array(entries, dtype=np.int64).reshape(-1, 3),
            weights=np.array(weights),
        )


def _joint_entries(
    block: Block, part: Array, column: int, entries: list[tuple[int, int, int]], weights: list[float]
) -> int:
    """Add what a block of joint parameters moves; the next free column."""
    field = block.kind.field
    if field not in FIELDS:
        raise RetorqueError(
            f"'{block.kind.name}' belongs to the drive, which is not part of the dynamics; leave it out"
        )
    for owner, values in zip(block.owners.tolist(), part, strict=True):
        for k in range(block.width):
            weight = 1.0
            if block.kind.name == "friction_slope":
                weight = float(np.exp(values[k]))
            elif block.kind.name == "friction_width":
                weight = -SLOPE_OF_WIDTH / float(values[k]) ** 2
            for side in (0, 1) if block.kind.both else (k,):
                entries.append((owner, FIELDS[field] + side, column))
                weights.append(weight)
            column += 1
    return column


def _terms(friction: Friction) -> tuple[Array, Array]:
    kinds, constants = [], []
    for name in friction.names:
        words = name.split()
        side = SIDES.get(words[-1], 0)
        number = next((float(word) for word in words[1:] if word not in SIDES), friction.limit)
        kind = TERM_KINDS[words[0]]
        kinds.append((kind, side))
        constants.append((friction.limit if words[0] == "presliding" else number, friction.limit))
    return np.array(kinds, dtype=np.int64).reshape(-1, 2), np.array(constants, dtype=float).reshape(-1, 2)
