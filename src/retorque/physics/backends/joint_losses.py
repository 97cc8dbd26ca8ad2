"""Joint losses with all their derivatives, as arrays: the reference for the compiled ones."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from retorque.physics.actuator import friction_slope, losses
from retorque.physics.backends.numbers import FIELDS, Chosen
from retorque.physics.parameters import Parameters
from retorque.work.array import Array


def _side(pair: Array, v: Array) -> Array:
    return np.where(v >= 0.0, pair[..., 0], pair[..., 1])


def all_losses(q: Array, v: Array, p: Parameters) -> tuple[Array, Array, Array, Array]:
    """Torque lost, its derivative by velocity, the slope that acts implicitly, and that one's derivative, (..., n)."""
    steep, value = _side(p.friction_slope, v), _sigmoid(v, p)
    rise = _side(p.friction_amplitude, v) * steep * value * (1.0 - value)
    slope = _side(p.viscous, v) + rise
    bend = steep * rise * (1.0 - 2.0 * value)
    if p.friction.count:
        slope = slope + np.sum(p.friction.slopes(v) * p.friction_coefficients, axis=-1)
        bend = np.where(slope < 0.0, 0.0, bend + np.sum(_bends(v, p) * p.friction_coefficients, axis=-1))
    return losses(v, p, q), slope, friction_slope(v, p), bend


def by_numbers(q: Array, v: Array, a: Array, p: Parameters, chosen: Chosen, step: float) -> Array:
    """d (lost + implicit slope * step * a) / d each free parameter of the joints, (knots, n, columns of `chosen`)."""
    columns = 1 + max([-1, *chosen.joints[:, 2].tolist(), *chosen.links[:, 1].tolist()])
    out = np.zeros((*v.shape, columns))
    lost_slope = all_losses(q, v, p)[1]
    ha = np.where(lost_slope < 0.0, 0.0, step * a) if p.friction.count else step * a
    steep, shift, value = _side(p.friction_slope, v), _side(p.friction_shift, v), _sigmoid(v, p)
    rest = expit(steep * shift)
    d, d0 = value * (1.0 - value), rest * (1.0 - rest)
    bend, amplitude = d * (1.0 - 2.0 * value), _side(p.friction_amplitude, v)
    table = {
        "viscous": v + ha,
        "friction_amplitude": value - rest + steep * d * ha,
        "friction_slope": amplitude * ((v + shift) * d - shift * d0 + (d + steep * (v + shift) * bend) * ha),
        "friction_shift": amplitude * (steep * (d - d0) + steep**2 * bend * ha),
        "torque_bias": -np.ones_like(v),
    }
    features, slopes = p.friction.features(v), p.friction.slopes(v)
    for (joint, place, column), weight in zip(chosen.joints.tolist(), chosen.weights.tolist(), strict=True):
        name = max((x for x in FIELDS if FIELDS[x] <= place), key=FIELDS.__getitem__)
        side = place - FIELDS[name]
        if name == "armature":
            part = a[:, joint]
        elif name == "stiffness":
            part = q[:, joint] - p.rest_position[joint]
        elif name == "rest_position":
            part = np.full(len(q), -p.stiffness[joint])
        elif name == "friction_coefficients":
            part = features[:, joint, side] + slopes[:, joint, side] * ha[:, joint]
        else:
            part = np.where((v[:, joint] >= 0.0) == (side == 0), table[name][:, joint], 0.0)
        out[:, joint, column] += weight * part
    return out


def _sigmoid(v: Array, p: Parameters) -> Array:
    return expit(_side(p.friction_slope, v) * (v + _side(p.friction_shift, v)))


def _bends(v: Array, p: Parameters) -> Array:
    """Second derivatives of the friction's features by velocity, (..., n, count)."""
    f = p.friction
    sign = np.clip(v / f.limit, -1.0, 1.0)
    rise = np.where(np.abs(v) < f.limit, 1.0 / f.limit, 0.0)
    none = np.zeros_like(v)
    terms = [none] * (f.coulomb + len(f.presliding) + f.viscous)
    for speed in f.stribeck:
        g = np.exp(-np.square(v / speed))
        first, second = -2.0 * v / speed**2 * g, (-2.0 / speed**2 + 4.0 * v**2 / speed**4) * g
        terms.append(2.0 * rise * first + sign * second)
    for width in f.saturating:
        value = np.tanh(v / width)
        terms.append(-2.0 * value * (1.0 - value**2) / width**2)
    if f.asymmetric:
        terms = [side for x in terms for side in (np.where(v >= 0.0, x, 0.0), np.where(v >= 0.0, 0.0, x))]
    return np.stack([*terms, none] if f.offset else terms, axis=-1)
