"""Compiled joint losses (damping, friction, springs, bias) with all their derivatives (numba).

The same laws as `physics.actuator`, of one joint at a time. Friction acts implicitly within a step, as it does in the
simulator: its slope times the time step counts as inertia.
"""

from __future__ import annotations

import math

from retorque.physics.backends.tree.kernel import F1, I1, kernel
from retorque.physics.backends.tree.lanes import LANES

VISCOUS, AMPLITUDE, SLOPE, SHIFT, BIAS = 0, 2, 4, 6, 8  # one for each direction
STIFFNESS, REST, ARMATURE = 10, 11, 12
TERMS = 13
"""Numbers a joint before the coefficients of the friction's linear terms."""
COULOMB, LINEAR, STRIBECK, SATURATING, OFFSET = 0, 1, 2, 3, 4


@kernel("UniTuple(float64, 3)(float64, int64, float64, int64)")
def term(v, kind, constant, side):
    """A friction term, its first and its second derivative by velocity.

    Args:
        v: velocity [rad/s].
        kind: one of the codes above.
        constant: limit velocity, Stribeck velocity or width [rad/s]; a Stribeck term's limit is that of the model.
        side: 0 both directions, 1 forward, -1 backward.
    """
    if kind == OFFSET:
        return 1.0, 0.0, 0.0
    if (side > 0 and v < 0.0) or (side < 0 and v >= 0.0):
        return 0.0, 0.0, 0.0
    if kind == LINEAR:
        return v, 1.0, 0.0
    if kind == SATURATING:
        value = math.tanh(v / constant)
        slope = (1.0 - value * value) / constant
        return value, slope, -2.0 * value * slope / constant
    inside = abs(v) < constant
    return (v / constant if inside else math.copysign(1.0, v)), (1.0 / constant if inside else 0.0), 0.0


@kernel("UniTuple(float64, 3)(float64, float64, float64, int64)")
def stribeck(v, limit, speed, side):
    """The Stribeck term, limited sign times exp(-(v/speed)²), and its two derivatives."""
    sign, rise, _ = term(v, COULOMB, limit, side)
    g = math.exp(-((v / speed) ** 2))
    g1 = -2.0 * v / speed**2 * g
    g2 = (-2.0 / speed**2 + 4.0 * v**2 / speed**4) * g
    return sign * g, rise * g + sign * g1, 2.0 * rise * g1 + sign * g2


@kernel(f"UniTuple(float64, 4)({F1}, {I1}, {F1}, float64, float64)")
def joint_loss(own, terms, constants, q, v):
    """Torque lost, its derivative by velocity, the slope that acts implicitly, and that one's derivative.

    Args:
        own: the joint's numbers, by the codes above, then its coefficients.
        terms: (2 * count) kind and side of each friction term.
        constants: (2 * count) velocity of each term, and the model's limit velocity.
        q: position [rad].
        v: velocity [rad/s].
    """
    k = 0 if v >= 0.0 else 1
    lost = own[VISCOUS + k] * v - own[BIAS + k] + own[STIFFNESS] * (q - own[REST])
    slope, bend = own[VISCOUS + k], 0.0
    amplitude, steep, shift = own[AMPLITUDE + k], own[SLOPE + k], own[SHIFT + k]
    if amplitude != 0.0:
        s = 1.0 / (1.0 + math.exp(-min(max(steep * (v + shift), -500.0), 500.0)))
        s0 = 1.0 / (1.0 + math.exp(-min(max(steep * shift, -500.0), 500.0)))
        lost += amplitude * (s - s0)
        slope += amplitude * steep * s * (1.0 - s)
        bend += amplitude * steep * steep * s * (1.0 - s) * (1.0 - 2.0 * s)
    count = len(terms) // 2
    for c in range(count):
        weight = own[TERMS + c]
        if weight != 0.0:
            if terms[2 * c] == STRIBECK:
                value, first, second = stribeck(v, constants[2 * c + 1], constants[2 * c], terms[2 * c + 1])
            else:
                value, first, second = term(v, terms[2 * c], constants[2 * c], terms[2 * c + 1])
            lost, slope, bend = lost + weight * value, slope + weight * first, bend + weight * second
    if count and slope < 0.0:  # friction that falls with speed cannot act implicitly
        return lost, slope, 0.0, 0.0
    return lost, slope, slope, bend


@kernel(f"float64({F1}, {I1}, {F1}, float64, float64, float64, float64, int64)")
def by_number(own, terms, constants, q, v, a, step, field):
    """Derivative of torque lost plus implicit slope times `step` times acceleration, by one of the joint's numbers."""
    k = 0 if v >= 0.0 else 1
    if field == ARMATURE:
        return a
    if field == STIFFNESS:
        return q - own[REST]
    if field == REST:
        return -own[STIFFNESS]
    if field >= BIAS and field < BIAS + 2:
        return -1.0 if field == BIAS + k else 0.0
    ha = step * a
    if len(terms) > 0 and joint_loss(own, terms, constants, q, v)[1] < 0.0:
        ha = 0.0
    if field >= TERMS:
        c = field - TERMS
        if terms[2 * c] == STRIBECK:
            value, first, _ = stribeck(v, constants[2 * c + 1], constants[2 * c], terms[2 * c + 1])
        else:
            value, first, _ = term(v, terms[2 * c], constants[2 * c], terms[2 * c + 1])
        return value + first * ha
    if field % 2 != k:
        return 0.0
    if field < AMPLITUDE:
        return v + ha
    amplitude, steep, shift = own[AMPLITUDE + k], own[SLOPE + k], own[SHIFT + k]
    s = 1.0 / (1.0 + math.exp(-min(max(steep * (v + shift), -500.0), 500.0)))
    s0 = 1.0 / (1.0 + math.exp(-min(max(steep * shift, -500.0), 500.0)))
    d, d0 = s * (1.0 - s), s0 * (1.0 - s0)
    bend = d * (1.0 - 2.0 * s)
    if field < SLOPE:
        return s - s0 + steep * d * ha
    if field < SHIFT:
        return amplitude * ((v + shift) * d - shift * d0 + (d + steep * (v + shift) * bend) * ha)
    return amplitude * (steep * (d - d0) + steep * steep * bend * ha)


@kernel(f"void({F1}, int64, {I1}, {F1}, {F1}, {F1}, int64, {F1})")
def losses(numbers, width, terms, constants, q, v, passed, out):
    """`joint_loss` of all joints of a block.

    Args:
        numbers, width: (joints * width) the joints' numbers, and how many each has.
        terms, constants: of the friction's terms.
        q, v: (coordinates * LANES), (freedoms * LANES).
        passed: degrees of freedom of a free base, which has no losses.
        out: (4 * freedoms * LANES) lost, derivative, implicit slope, its derivative.
    """
    freedoms = len(v) // LANES
    block = freedoms * LANES
    first = 1 if passed else 0
    for d in range(passed):
        for i in range(LANES):
            for c in range(4):
                out[c * block + d * LANES + i] = 0.0
    for d in range(passed, freedoms):
        own = numbers[(d - passed) * width : (d - passed + 1) * width]
        for i in range(LANES):
            e = d * LANES + i
            lost, slope, implicit, bend = joint_loss(own, terms, constants, q[(d + first) * LANES + i], v[e])
            out[e], out[block + e], out[2 * block + e], out[3 * block + e] = lost, slope, implicit, bend
