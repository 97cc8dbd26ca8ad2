"""What the recursive adapter has learnt, for a person: unknowns with errors, and what the motion has not shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.unknowns import NAMES, PER_JOINT
from retorque.work.array import Array

UNITS = ("kg·m²", *("N·m·s/rad",) * 2, *("N·m",) * 10, "", "")
"""Of each joint's unknowns."""
UNEXCITED = 0.8
"""A direction whose doubt is still this share of the prior's has not been excited."""


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """One line of an estimate."""

    name: str
    value: float
    std: float
    """Standard deviation now."""
    prior_std: float
    """Standard deviation before any motion."""
    unit: str

    @property
    def excited(self) -> bool:
        """Whether the motion so far has said anything about it."""
        return self.std < UNEXCITED * self.prior_std


@dataclass(frozen=True, kw_only=True)
class Readout:
    """One trial's estimate."""

    unknowns: tuple[Unknown, ...]
    """Each joint's own unknowns, then each link's mass (the last one carries the payload)."""
    unexcited: tuple[str, ...]
    """The combinations of unknowns, in words, that the motion so far has not excited."""

    def __str__(self) -> str:
        lines = [f"{u.name:32s} {u.value:9.4g} ± {u.std:.2g} {u.unit}{'' if u.excited else '  (not excited)'}"
                 for u in self.unknowns]  # fmt: skip
        return "\n".join([*lines, f"not excited: {len(self.unexcited)} directions", *self.unexcited])


def read(model: LinearModel, estimate: SquareRootFilter, trial: int) -> Readout:
    """The estimate of one trial."""
    names = [link.name for link in model.robot.moving_links]
    joints = model.robot.joint_names
    mean, root = estimate.mean[trial], estimate.root[trial]
    joint, inertial = model.unknowns(mean)
    unknowns = []
    for j, joint_name in enumerate(joints):
        block = slice(j * PER_JOINT, (j + 1) * PER_JOINT)
        spread = model.joint_root[j] @ root[block]  # (F, size)
        for f, name in enumerate(NAMES):
            unknowns.append(
                Unknown(
                    name=f"{joint_name} {name}",
                    value=float(joint[j, f]),
                    std=float(np.linalg.norm(spread[f])),
                    prior_std=float(np.linalg.norm(model.joint_root[j, f])),
                    unit=UNITS[f],
                )
            )
    spread = model.inertial_root @ root[model.inertial_part]
    for k, name in enumerate(names):
        unknowns.append(
            Unknown(
                name=f"{name} mass",
                value=float(inertial[10 * k]),
                std=float(np.linalg.norm(spread[10 * k])),
                prior_std=float(np.linalg.norm(model.inertial_root[10 * k])),
                unit="kg",
            )
        )
    return Readout(unknowns=tuple(unknowns), unexcited=_unexcited(model, root, names))


def _unexcited(model: LinearModel, root: Array, names: list[str]) -> tuple[str, ...]:
    """Principal directions of the covariance still as wide as the prior, named by what they are made of most."""
    labels = [f"{joint} {name}" for joint in model.robot.joint_names for name in NAMES]
    ten = ("mass", "mc x", "mc y", "mc z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
    masses = [f"{name} {what}" for name in names for what in ten]
    last = model.touch_part.start  # what touches the robot is no unknown of its own
    size, axes = np.linalg.eigh((root @ root.T)[:last, :last])
    split = model.n * PER_JOINT
    scale = np.maximum(np.linalg.norm(model.inertial_root, axis=1), 1e-12)
    found = []
    for k in np.flatnonzero(np.sqrt(np.maximum(size, 0.0)) > UNEXCITED):
        own = np.einsum("jfg,jg->jf", model.joint_root, axes[:split, k].reshape(model.n, PER_JOINT))
        own = own / np.maximum(np.linalg.norm(model.joint_root, axis=-1), 1e-12)
        body = model.inertial_root @ axes[model.inertial_part, k] / scale
        weight = np.abs(np.concatenate([own.ravel(), body]))
        top = np.argsort(weight)[::-1][:3]
        found.append(" with ".join((labels + masses)[i] for i in top if weight[i] > 0.3 * weight[top[0]]))
    return tuple(dict.fromkeys(found))
