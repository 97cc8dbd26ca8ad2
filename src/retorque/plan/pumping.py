"""Candidates for a search: inputs that drive energy into the joints without a motor, as fast as the limits allow."""

from __future__ import annotations

import numpy as np

from retorque.plan.cost import QuadraticCost
from retorque.plan.ilqr import ILQR
from retorque.work.array import Array

CENTRING = (0.0, 0.1, 0.25)
"""How hard the joints with a motor are drawn to the target meanwhile, one candidate each [limit a metre or radian]."""
HELD = 0.05
"""For how long an input is held [s]."""


def pumped(ilqr: ILQR, cost: QuadraticCost, x: Array, p: Array | None, steps: int) -> Array:
    """Inputs (candidates, steps, inputs) at their limits with the sign of v' da/du over the joints without a motor.

    That is the sign with which an input does work on them. None where every joint has a motor: (0, steps, inputs).
    """
    d, limit = ilqr.dynamics, ilqr.limit
    n = d.nv
    passive = np.setdiff1d(np.arange(n), d.actuated)
    if not len(passive):
        return np.zeros((0, steps, len(limit)))
    held = max(1, round(HELD / d.timestep))
    out = np.zeros((len(CENTRING), steps, len(limit)))
    for index, centring in enumerate(CENTRING):
        now = np.array(x, dtype=float)
        for begin in range(0, steps, held):
            _, by_input, _ = d.linearise(np.stack([now, now]), np.zeros((1, len(limit))), p)
            work = now[n + passive] @ by_input[0][n + passive]
            u = limit * np.clip(np.sign(work) - centring * cost.error(now.copy())[d.actuated], -1.0, 1.0)
            span = slice(begin, min(begin + held, steps))
            out[index, span] = u
            now = ilqr.rollouts(now, out[None, index, span], p)[0, -1]
            if not np.all(np.isfinite(now)):
                break
    return out
