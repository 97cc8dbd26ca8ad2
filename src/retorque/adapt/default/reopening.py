"""What an explanation that won means for the estimate: where its mean goes, and what it may doubt again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.recursive.linear_model import PER_JOINT, LinearModel
from retorque.adapt.recursive.unknowns import BIAS, FRICTION_BACKWARD, FRICTION_FORWARD, SCALE, VISCOUS
from retorque.work.array import Array

INFLATION = 1.5
"""How much wider than the explanation's own errors the estimate is opened: it was found in a moment."""
INERTIAL_DOUBT = 0.15
"""Doubt about all inertial directions beside a payload [prior standard deviations]."""
GAIN_DOUBT = 0.02
"""Doubt about each drive's gain beside a common factor."""
JOINT_DOUBT = 0.7
"""Doubt about all unknowns of a joint that changed [prior standard deviations]."""
MIDDLE = 1
"""Which of the friction basis' widths stands for a step of friction (0.05 rad/s)."""


@dataclass(frozen=True)
class Opening:
    """A change of one trial's estimate, in whitened coordinates."""

    shift: Array
    """(size,) by which the mean moves."""
    doubt: Array
    """(size, m) columns by whose outer products the covariance grows."""


class Reopening:
    """Turns payloads, gains and joints' own changes into changes of the linear model's estimate.

    Args:
        model: whose estimate it is.
        columns: where the payload's ten numbers stand among the links' (10 L).
    """

    def __init__(self, model: LinearModel, columns: slice):
        self._size, self._n = model.size, model.n
        self._split, self._inertial = model.n * PER_JOINT, model.inertial_part
        self._payload = np.linalg.pinv(model.inertial_root)[:, columns]  # (k, 10)
        own = np.linalg.pinv(model.joint_root)  # (n, F, F)
        self._gain = -own[:, :, SCALE].sum(axis=-1)  # (n, F): a torque of x τ more is a gain of x less
        bias = -own[:, :, BIAS].sum(axis=-1)
        friction = own[:, :, FRICTION_FORWARD][:, :, MIDDLE] + own[:, :, FRICTION_BACKWARD][:, :, MIDDLE]
        viscous = own[:, :, VISCOUS].sum(axis=-1)
        self._own = np.stack([self._gain, bias, friction, viscous], axis=-1)  # (n, F, 4)
        unit = own[:, :, SCALE] / np.linalg.norm(own[:, :, SCALE], axis=1, keepdims=True)  # (n, F, 2) directions
        self._gain_share = np.einsum("jfa,jga->jfg", unit, unit)

    def closed_root(self, share: Array) -> Array:
        """A covariance root (size, size) like the prior's, but gains believed near one, to a share (n,) of it."""
        root = np.eye(self._size)
        for j in range(self._n):
            block = slice(j * PER_JOINT, (j + 1) * PER_JOINT)
            root[block, block] -= (1.0 - share[j]) * self._gain_share[j]
        return root

    def payload(self, mean: Array, covariance: Array) -> Opening:
        """Of ten numbers at the mount and a common factor of the drives, (11,) and (11, 11)."""
        map_ = np.zeros((self._size, 11))
        map_[self._inertial, :10] = self._payload
        map_[: self._split, 10] = self._gain.ravel()
        index = np.arange(self._inertial.stop - self._inertial.start)
        rest = np.zeros((self._size, len(index) + self._n))
        rest[self._split + index, index] = INERTIAL_DOUBT
        for j in range(self._n):
            rest[j * PER_JOINT : (j + 1) * PER_JOINT, len(index) + j] = GAIN_DOUBT * self._gain[j]
        return Opening(map_ @ mean, np.concatenate([map_ @ _root(covariance), rest], axis=1))

    def joint(self, which: int, mean: Array, covariance: Array) -> Opening:
        """Of one joint's gain, bias, friction and viscous friction, (4,) and (4, 4)."""
        block = slice(which * PER_JOINT, (which + 1) * PER_JOINT)
        shift = np.zeros(self._size)
        shift[block] = self._own[which] @ mean
        doubt = np.zeros((self._size, 4 + PER_JOINT))
        doubt[block, :4] = self._own[which] @ _root(covariance)
        doubt[block, 4:] = JOINT_DOUBT * (np.eye(PER_JOINT) - self._gain_share[which])
        return Opening(shift, doubt)


def _root(covariance: Array) -> Array:
    size, axes = np.linalg.eigh(covariance)
    return INFLATION * axes * np.sqrt(np.maximum(size, 0.0))
