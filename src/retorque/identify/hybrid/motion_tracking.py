"""The motion-tracking experiment: models as the feed-forward term of joint impedance control on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from retorque.identify.hybrid.recordings import RATE, STIFF
from retorque.identify.hybrid.streaming import StreamingModel
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.stand_in import StandIn, StandInSettings
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

GAINS: dict[str, tuple[float, ...]] = {"soft": (1.0,), "medium": (50.0,), "stiff": STIFF}
"""Stiffness of the paper's three settings [1/s²], damping critical; the last value serves the joints that follow."""
DURATIONS = {"fast": 2.0, "slow": 10.0}
"""Seconds a movement takes."""
MOVES = 5
"""Movements that are made one after another."""

Velocity = Literal["desired", "measured"]


@dataclass(frozen=True)
class Tracking:
    """What happened at one speed; leading axes (models, gains, routes)."""

    rmse: Array
    """(models, gains, routes, moves, n) of the joint angles during each movement [rad]."""
    offset: Array
    """(models, gains, routes, moves, n) absolute joint error at each movement's end [rad]."""
    failed: Array
    """(models, gains, routes) whether a joint ran into its limits."""


def min_jerk(start: Array, goal: Array, time: float, duration: float) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration of the smoothest move from rest to rest, like `start`."""
    s = min(max(time / duration, 0.0), 1.0)
    span = goal - start
    shape = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    speed = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    rate = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
    return start + shape * span, speed * span, rate * span


def set_points(robot: Robot, routes: int, seed: int, reach: float = 0.6) -> Array:
    """(routes, moves + 1, n) joint states around home, each within `reach` [rad] and inside the limits."""
    rng = np.random.default_rng([seed, 53])
    points = robot.home + rng.uniform(-reach, reach, (routes, MOVES + 1, robot.n))
    return np.clip(points, robot.lower + 0.3, robot.upper - 0.3)


def track(
    robot: Robot,
    models: list[StreamingModel],
    routes: Array,
    speed: str,
    *,
    velocity: Velocity = "measured",
    seed: int = 0,
    settings: StandInSettings | None = None,
    progress: Callable[[float], None] | None = None,
) -> Tracking:
    """Let every model at every gain follow every route at one speed.

    The controller is the paper's appendix B with unit desired inertia: the rigid part's torque at the acceleration
    qdd_des - B (qd - qd_des) - K (q - q_des), and the network's at qdd_des, which is all feed-forward. Memories are
    warmed up for 500 ticks at the first state.

    Args:
        robot: the card.
        models: the feed-forward terms.
        routes: (routes, moves + 1, n) set points.
        speed: a name of `DURATIONS`.
        velocity: what the models see. The paper's is "measured": friction that is predicted from the measured velocity
            is fed back, and where it is predicted too large it drives the joint. "desired" only feeds forward.
        seed: of what the stand-in hides (the recordings' seed).
        settings: sizes of what is hidden.
        progress: told the part that is done.
    """
    if not models:
        raise RetorqueError("tracking needs at least one model")
    lead = (len(models), len(GAINS), len(routes))
    trials = int(np.prod(lead))
    stiffness = np.array([[gain[min(i, len(gain) - 1)] for i in range(robot.n)] for gain in GAINS.values()])
    spread = np.broadcast_to(stiffness[None, :, None], (*lead, robot.n)).reshape(trials, robot.n)
    damping = 2.0 * np.sqrt(spread)
    points = np.broadcast_to(routes, (*lead[:2], *routes.shape)).reshape(trials, MOVES + 1, robot.n)
    arm = StandIn(robot, trials, seed=seed, noise_seed=seed + 7, settings=settings)
    state = arm.reset(points[:, 0])
    rows = [slice(i * trials // len(models), (i + 1) * trials // len(models)) for i in range(len(models))]
    still = np.zeros((trials, robot.n))
    for model, span in zip(models, rows, strict=True):
        model.reset()
        model.warm_up(state.position[span], still[span], still[span])
    failed = np.zeros(trials, dtype=bool)
    duration = DURATIONS[speed]
    ticks = round(duration * RATE)
    rmse = np.zeros((MOVES, trials, robot.n))
    offset = np.zeros((MOVES, trials, robot.n))
    command = np.zeros((trials, robot.n))
    for move in range(MOVES):
        start, goal = points[:, move], points[:, move + 1]
        for tick in range(ticks):
            want, want_d, want_dd = min_jerk(start, goal, tick / RATE, duration)
            error, error_d = state.position - want, state.velocity - want_d
            rmse[move] += np.square(error)
            wanted = want_dd - spread * error - damping * error_d
            for model, span in zip(models, rows, strict=True):
                q, qd = state.position[span], (want_d if velocity == "desired" else state.velocity)[span]
                command[span] = model.stateless(q, qd, wanted[span]) + model.residual(q, qd, want_dd[span])
            command[failed] = 0.0
            arm.write(Command(torque=command))
            state = arm.read()
            beyond = np.any((state.position < robot.lower) | (state.position > robot.upper), axis=1)
            failed |= beyond | arm.diverged
            if np.any(failed):
                arm.hold(failed, points[:, 0])
            if progress and tick % 200 == 0:
                progress((move + tick / ticks) / MOVES)
        offset[move] = np.abs(state.position - goal)
    if progress:
        progress(1.0)
    shape = (*lead, MOVES, robot.n)
    return Tracking(
        rmse=np.sqrt(rmse / ticks).swapaxes(0, 1).reshape(shape),
        offset=offset.swapaxes(0, 1).reshape(shape),
        failed=failed.reshape(lead),
    )
