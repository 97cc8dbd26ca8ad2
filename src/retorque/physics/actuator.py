"""The drive between a commanded torque and the torque that moves the joint, and its exact inverse (TAM, B.1 - B.8)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from retorque.physics.parameters import Parameters
from retorque.work.array import Array

DEAD_ZONE_SLOPE = 1e-2
"""Slope inside the dead zone (epsilon of B.4), which keeps the map invertible."""


def _by_sign(pair: Array, sign_of: Array) -> Array:
    """The positive or negative entry of (..., n, 2), by the sign of (..., n)."""
    return np.where(sign_of >= 0.0, pair[..., 0], pair[..., 1])


def friction(velocity: Array, p: Parameters) -> Array:
    """Sigmoidal friction (B.3), (..., n) [N·m]."""
    slope, shift = _by_sign(p.friction_slope, velocity), _by_sign(p.friction_shift, velocity)
    rise = expit(slope * (velocity + shift)) - expit(slope * shift)
    return _by_sign(p.friction_amplitude, velocity) * rise


def friction_slope(velocity: Array, p: Parameters, slip_slope: Array | None = None) -> Array:
    """Derivative of all friction by velocity, (..., n) [N·m·s/rad].

    Args:
        velocity: (..., n) [rad/s].
        p: the target's parameters.
        slip_slope: derivative of the presliding states by velocity, where the path is known; see `SlipState`.
    """
    slope, shift = _by_sign(p.friction_slope, velocity), _by_sign(p.friction_shift, velocity)
    value = expit(slope * (velocity + shift))
    amplitude = _by_sign(p.friction_amplitude, velocity)
    out = _by_sign(p.viscous, velocity) + amplitude * slope * value * (1.0 - value)
    if p.friction.count:
        # Friction that falls with speed (Stribeck) has a negative slope, which no integrator takes as damping.
        out = np.maximum(out + np.sum(p.friction.slopes(velocity, slip_slope) * p.friction_coefficients, axis=-1), 0.0)
    return out


def losses(velocity: Array, p: Parameters, position: Array | None = None, slip: Array | None = None) -> Array:
    """What motion costs: damping + friction - bias (B.2, B.3) + spring, (..., n) [N·m].

    Args:
        velocity: (..., n) [rad/s].
        p: the target's parameters.
        position: (..., n) [rad]; without it springs are slack.
        slip: (..., n, distances) presliding states, where the path is known.
    """
    out = _by_sign(p.viscous, velocity) * velocity + friction(velocity, p) - _by_sign(p.torque_bias, velocity)
    if p.friction.count:
        out = out + p.friction.torque(velocity, p.friction_coefficients, slip)
    if position is not None and np.any(p.stiffness):
        out = out + p.stiffness * (position - p.rest_position)
    return out


def drive(command: Array, p: Parameters) -> Array:
    """Torque scale, then dead zone (B.1, B.4), (..., n) [N·m]."""
    scaled = _by_sign(p.torque_scale, command) * command
    width = _by_sign(p.dead_zone, scaled)
    size = np.abs(scaled)
    outside = np.sign(scaled) * (size - width + DEAD_ZONE_SLOPE * width)
    return np.where(size <= width, DEAD_ZONE_SLOPE * scaled, outside)


def inverse_drive(torque: Array, p: Parameters) -> Array:
    """The command that `drive` turns into `torque` (B.7, B.8), (..., n) [N·m]."""
    width = _by_sign(p.dead_zone, torque)
    size = np.abs(torque)
    outside = np.sign(torque) * (size - DEAD_ZONE_SLOPE * width + width)
    scaled = np.where(size <= DEAD_ZONE_SLOPE * width, torque / DEAD_ZONE_SLOPE, outside)
    return scaled / _by_sign(p.torque_scale, scaled)


def effective_torque(command: Array, velocity: Array, p: Parameters, position: Array | None = None) -> Array:
    """The torque that moves the joint under a command at a velocity (B.5), (..., n) [N·m]."""
    return drive(command, p) - losses(velocity, p, position)


def command_for(
    effective: Array, velocity: Array, p: Parameters, position: Array | None = None, slip: Array | None = None
) -> Array:
    """The command that yields an effective torque at a velocity (B.6 - B.8), (..., n) [N·m]."""
    return inverse_drive(effective + losses(velocity, p, position, slip), p)


class PreparedLosses:
    """`losses` and `friction_slope` of one set of parameters together, for a simulation that needs both at every step.

    What does not depend on the state is prepared once and what both need is computed once; the results are the same to
    the bit.

    Args:
        p: the target's parameters.
    """

    def __init__(self, p: Parameters):
        self._p = p
        names = ("friction_slope", "friction_shift", "friction_amplitude", "viscous", "torque_bias")
        steep, shift, amplitude, viscous, bias = (np.moveaxis(getattr(p, name), -1, 0) for name in names)
        parts = (steep, shift, amplitude, viscous, bias, expit(steep * shift), amplitude * steep)
        self._forward, self._backward = np.stack(np.broadcast_arrays(*parts), axis=1)  # (7, ..., n) each
        self._terms = p.friction.count > 0
        self._springs = bool(np.any(p.stiffness))
        self._lossless = not (self._terms or self._springs or any(np.any(part) for part in (amplitude, viscous, bias)))

    def __call__(
        self, velocity: Array, position: Array, slip: Array | None = None, slip_slope: Array | None = None
    ) -> tuple[Array, Array]:
        """Torque lost (..., n) [N·m] and its derivative by velocity (..., n) [N·m·s/rad]."""
        if self._lossless:
            return np.zeros_like(velocity), np.zeros_like(velocity)
        sides = [self._forward, self._backward]
        if velocity.ndim >= sides[0].ndim:  # more robots than parameters
            more = (1,) * (velocity.ndim + 1 - sides[0].ndim)
            sides = [side.reshape(len(side), *more, *side.shape[1:]) for side in sides]
        chosen = np.where(velocity >= 0.0, *sides)
        steep, shift, amplitude, viscous, bias, at_rest, steepest = chosen
        value = expit(steep * (velocity + shift))
        lost = viscous * velocity
        lost += amplitude * (value - at_rest)
        lost -= bias
        by_velocity = viscous + steepest * value * (1.0 - value)
        if self._terms:
            p = self._p
            lost = lost + p.friction.torque(velocity, p.friction_coefficients, slip)
            steepness = np.sum(p.friction.slopes(velocity, slip_slope) * p.friction_coefficients, axis=-1)
            by_velocity = np.maximum(by_velocity + steepness, 0.0)  # as in `friction_slope`
        if self._springs:
            lost = lost + self._p.stiffness * (position - self._p.rest_position)
        return lost, by_velocity


class PreparedDrive:
    """`drive` of one set of parameters, the same to the bit, for a simulation that needs it at every step.

    Args:
        p: the target's parameters.
    """

    def __init__(self, p: Parameters):
        pairs = (np.moveaxis(part, -1, 0) for part in (p.torque_scale, p.dead_zone))
        self._scale, self._width = (np.ascontiguousarray(pair) for pair in pairs)  # (2, ..., n) each
        self._scaled, self._dead = bool(np.any(self._scale != 1.0)), bool(np.any(self._width))

    def __call__(self, command: Array) -> Array:
        """(..., n) [N·m]; the command itself where the drive is ideal."""
        scaled = np.where(command >= 0.0, *self._scale) * command if self._scaled else command
        if not self._dead:
            return scaled
        width = np.where(scaled >= 0.0, *self._width)
        size = np.abs(scaled)
        outside = np.copysign(size - width + DEAD_ZONE_SLOPE * width, scaled)
        return np.where(size <= width, DEAD_ZONE_SLOPE * scaled, outside)
