"""A robot with everything hidden that its dynamics know of, and states to look at it in, for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from retorque.physics.dynamics import Dynamics
from retorque.physics.friction import PRESETS, Friction
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.work.array import Array


def hidden(robot: Robot, friction: Friction | None = None) -> Parameters:
    """Everything that the dynamics know of, at once."""
    rng, n = np.random.default_rng(3), robot.n
    p = Parameters.ideal(robot, friction=friction or PRESETS["none"])
    return replace(
        p,
        viscous=rng.uniform(0.0, 1.0, (n, 2)),
        friction_amplitude=rng.uniform(0.1, 1.0, (n, 2)),
        friction_slope=rng.uniform(2.0, 20.0, (n, 2)),
        friction_shift=rng.uniform(-0.1, 0.1, (n, 2)),
        torque_bias=rng.uniform(-1.0, 1.0, (n, 2)),
        stiffness=rng.uniform(0.0, 2.0, n),
        rest_position=rng.uniform(-1.0, 1.0, n),
        armature=rng.uniform(0.01, 0.1, n),
        friction_coefficients=rng.uniform(0.1, 1.0, (n, p.friction.count)),
    )


def knots(d: Dynamics, count: int = 9) -> tuple[Array, Array]:
    """States and inputs; nine are one more than a block of the compiled code."""
    rng = np.random.default_rng(1)
    pin.seed(1)
    q = [pin.randomConfiguration(d.body.model, -np.ones(d.nq), np.ones(d.nq)) for _ in range(count)]
    x = np.concatenate([np.array(q), rng.standard_normal((count, d.nv))], axis=1)
    return x, 3.0 * rng.standard_normal((count, d.inputs))


def far(a: Array, b: Array) -> float:
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))
