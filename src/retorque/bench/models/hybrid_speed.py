"""The hybrid feed-forward model of the paper's size, with weights drawn at random: enough to time a tick."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.identify.hybrid.streaming import WARM_UP, StreamingModel, header_of
from retorque.physics.inertia import robot_inertia
from retorque.robots.robot import Robot
from retorque.work.array import Array

LINEAR, HIDDEN, STRIDE = 100, 50, 10
"""Sizes of the LSTM residual (Table IV), and how many memories take turns."""


def random_hybrid(robot: Robot, seed: int) -> StreamingModel:
    """Rigid body, Sign friction and LSTM residual; how long a tick takes does not depend on the weights."""
    rng = np.random.default_rng([seed, 7])
    n = robot.n

    def draw(*shape: int) -> Array:
        return 0.1 * rng.standard_normal(shape)

    network = {
        "inward.weight": draw(LINEAR, 3 * n),
        "inward.bias": draw(LINEAR),
        "norm_before.weight": np.ones(LINEAR),
        "norm_before.bias": draw(LINEAR),
        "bend.weight": np.array([0.25]),
        "norm_after.weight": np.ones(LINEAR),
        "norm_after.bias": draw(LINEAR),
        "memory.weight_ih_l0": draw(4 * HIDDEN, LINEAR),
        "memory.weight_hh_l0": draw(4 * HIDDEN, HIDDEN),
        "memory.bias_ih_l0": draw(4 * HIDDEN),
        "memory.bias_hh_l0": draw(4 * HIDDEN),
        "outward.weight": draw(n, HIDDEN),
        "outward.bias": draw(n),
    }
    arrays = {
        "rigid.inertial": robot_inertia(robot),
        "rigid.armature": robot.armature,
        "rigid.coulomb": np.ones(n),
        "rigid.limit": np.array(0.02),
        "mean": np.zeros(3 * n),
        "knee": np.ones(2 * n),
        "deviation": np.ones(3 * n),
        "output_scale": np.ones(n),
        **{f"network.{name}": value for name, value in network.items()},
    }
    shape = {"rigid": True, "residual": "lstm", "linear": LINEAR, "hidden": HIDDEN, "stride": STRIDE}
    return StreamingModel(robot, arrays, header_of(robot, shape, {"seed": seed}))


def hybrid_tick(robot: Robot, seed: int) -> Callable[[], Array]:
    """One tick of the feed-forward term after the warm-up, (n,) [N·m]; each call is at the next state of a motion."""
    model = random_hybrid(robot, seed)
    rng = np.random.default_rng([seed, 8])
    phase = rng.uniform(-np.pi, np.pi, robot.n) + 1e-3 * np.arange(4096)[:, None]
    states = list(zip(robot.home + 0.3 * np.sin(phase), 0.3 * np.cos(phase), -0.3 * np.sin(phase), strict=True))
    model.warm_up(*states[0], ticks=WARM_UP)
    tick = 0

    def call() -> Array:
        nonlocal tick
        tick = (tick + 1) % len(states)
        return model.torque(*states[tick])

    return call
