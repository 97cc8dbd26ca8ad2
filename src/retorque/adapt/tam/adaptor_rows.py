"""The adaptor's inputs at one tick, kept in one array: numbers down, the joints of all trials across."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import PROBES, Context
from retorque.work.array import Array

BENDS, NEWEST_BENDS = 1.0 / np.array([0.01, 0.03, 0.1]), 1.0 / np.array([0.02, 0.1])
"""Inverse widths of the adaptor's saturating velocity features [s/rad]; the same as in `adaptor_features`."""
SIGNED = 6 + PROBES
"""Numbers of the basis that stand there with their sign and, further down, without it."""


class RowLayout:
    """Which rows hold what, for a window of L ticks.

    The perceptron's inputs are the rows down to the mean velocity, the basis of the physical part are those from the
    bends on. Rows that one call computes are neighbours: at this size a NumPy call costs more than its arithmetic, and
    twice as much where its arrays are not contiguous.
    """

    def __init__(self, window: int):
        at = 3 + window - 1
        self.one, self.sine, self.cosine = 0, 1, 2
        self.moved = slice(3, at)
        """Positions less the newest one [rad]."""
        self.velocity = slice(at, at + window)
        self.torque = slice(at + window, at + 2 * window)
        """Saturated torques."""
        at += 2 * window
        self.newest_bends, self.bends = slice(at, at + 2), slice(at + 2, at + 5)
        """Saturated newest and mean velocities."""
        self.mean = at + 5
        """Mean velocity [rad/s]."""
        self.inputs, self.speeds = slice(0, self.mean), slice(at, at + 6)
        self.saturated = slice(self.torque.start, self.bends.stop)
        self.spread, self.carried = at + 6, at + 7
        """Torques of half the armature's range, and of the arm's own mass [N·m]."""
        self.probes = slice(at + 8, at + 8 + PROBES)
        """Torques of the test payloads [units]."""
        self.signed = slice(at + 2, at + 2 + SIGNED)
        self.sizes = slice(self.signed.stop, self.signed.stop + SIGNED)
        """Absolute values of the signed rows."""
        self.known, self.constant = self.sizes.stop, self.sizes.stop + 1
        """Torque of the armature in the middle of its range beyond the ideal one [N·m]; 1 once more."""
        self.basis = slice(self.signed.start, self.constant + 1)
        self.rows = self.constant + 1

    def embedding(self, weights: dict[str, Array]) -> Array:
        """The three embeddings as one matrix (3 * embed, inputs), biases and constant factors included."""
        names = ("position", "velocity", "torque")
        position, velocity, torque = (weights[f"{name}.weight"] for name in names)
        e, window = torque.shape
        out = np.zeros((3 * e, self.rows))
        out[:, self.one] = np.concatenate([weights[f"{name}.bias"] for name in names])
        out[:e, [self.sine, self.cosine]] = position[:, :2]
        out[:e, self.moved] = 50.0 * position[:, 2:]
        out[e : 2 * e, self.velocity] = velocity[:, :window]
        out[e : 2 * e, self.bends] = velocity[:, window : window + 3]
        out[e : 2 * e, self.newest_bends] = velocity[:, window + 3 :]
        out[2 * e :, self.torque] = 2.0 * torque
        return np.ascontiguousarray(out[:, self.inputs])

    def coefficients(self, found: Array, unit: Array) -> Array:
        """Coefficients (14, joints) of `adaptor_features`' basis [units] as those of this one (22, joints) [N·m]."""
        out = np.zeros((self.rows, found.shape[1]))
        out[self.constant] = found[0] * unit
        out[self.mean] = found[1] * unit
        out[self._size(self.mean)] = found[2] * unit
        out[self.bends] = found[3:6] * unit
        out[self._size(self.bends.start + 1)] = found[6] * unit
        out[[self.spread, self.known, self.carried]] = found[[7, 8, 9]]
        out[self.probes] = found[10:] * unit
        return out[self.basis]

    def limits(self, context: Context, trials: int) -> Array:
        """The most that a target of the robot's profile can need: coefficients (22, trials * n) of the basis [N·m]."""
        p = context.profile
        out = np.zeros((self.rows, context.robot.n))
        out[self.constant] = p.friction_max + p.bias_max * (1.0 + p.bias_difference) + p.dead_zone_max + context.unit
        out[self._size(self.mean)] = p.viscous_max
        out[self._size(self.spread)] = 1.0
        out[self._size(self.carried)] = 0.25
        out[self._size(self.probes.start) : self.sizes.stop] = context.unit
        return np.tile(out[self.basis], trials)

    def _size(self, row: int) -> int:
        """The row with a signed row's absolute values."""
        return row + SIGNED


class AdaptorRows:
    """What `adaptor_features` computes, (rows, trials * n), float64.

    Args:
        context: the robot's.
        window: ticks the adaptor sees (L).
        trials: robots served at once.
    """

    def __init__(self, context: Context, window: int, trials: int):
        at = RowLayout(window)
        rows = np.zeros((at.rows, trials * context.robot.n))
        rows[[at.one, at.constant]] = 1.0
        # Views are made once: an index costs half as much as the call it is for.
        self._sine, self._cosine, self._moved = rows[at.sine], rows[at.cosine], rows[at.moved]
        self._velocity, self._torque, self._speeds = rows[at.velocity], rows[at.torque], rows[at.speeds]
        self._saturated, self._spread, self._carried = rows[at.saturated], rows[at.spread], rows[at.carried]
        self._probes = rows[at.probes].reshape(PROBES, trials, -1)
        self._signed, self._sizes = rows[at.signed], rows[at.sizes]
        self.inputs = rows[at.inputs]
        """The perceptron's inputs."""
        self.basis = rows[at.basis]
        self.known = rows[at.known]
        """(trials * n) torque of the armature in the middle of its range beyond the ideal one [N·m]."""
        newest, mean = np.eye(window)[0], np.full(window, 1.0 / window)
        self._to_speeds = np.array([*np.outer(NEWEST_BENDS, newest), *np.outer(BENDS, mean), mean])
        self._per_load = np.tile(0.5 / context.load, (window, trials))
        self._armature = np.tile(context.robot.armature, trials)
        self._range, self._shift = np.tile(context.armature_range, trials), np.tile(context.armature_shift, trials)

    def fill(self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array) -> None:
        """Compute every row.

        Args:
            q: positions (L, trials * n), newest first [rad].
            qd: velocities, the same [rad/s].
            torque: reported torques, the same [N·m].
            nominal: nominal torque (trials * n) [N·m].
            ideal: the ideal robot's acceleration under it, the same [rad/s²].
            probes: torques of the test payloads at that acceleration (trials, 4, n) [units].
        """
        now = q[0]
        np.sin(now, out=self._sine)
        np.cos(now, out=self._cosine)
        np.subtract(q[1:], now, out=self._moved)
        np.copyto(self._velocity, qd)
        self._to_speeds.dot(self._velocity, out=self._speeds)
        np.multiply(torque, self._per_load, out=self._torque)
        np.tanh(self._saturated, out=self._saturated)
        np.multiply(ideal, self._range, out=self._spread)
        np.multiply(ideal, self._shift, out=self.known)
        np.multiply(ideal, self._armature, out=self._carried)
        np.subtract(nominal, self._carried, out=self._carried)
        np.copyto(self._probes, probes.transpose(1, 0, 2))
        np.absolute(self._signed, out=self._sizes)
