"""The motion-tracking experiment: models as the feed-forward term of joint impedance control on the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.identify.hybrid.recordings import RATE, STIFF
from retorque.identify.hybrid.streaming import StreamingModel
from retorque.loop.loop import Loop
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
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


class Moves:
    """Set points as a policy: the smoothest move from each to the next, one after another.

    Args:
        points: (trials, moves + 1, n) [rad].
        duration: of a move [s].
    """

    period = 0.0

    def __init__(self, points: Array, duration: float):
        self.points, self.duration = points, duration
        self.ticks = round(duration * RATE)
        """Of a move."""

    def reset(self, state: State) -> None:
        """The first move begins."""
        self._begun = state.time

    def act(self, state: State) -> JointAction:
        """Where the joints should be now."""
        move, tick = divmod(round((state.time - self._begun) * RATE), self.ticks)
        start, goal = self.points[:, move], self.points[:, move + 1]
        return JointAction(*min_jerk(start, goal, tick / RATE, self.duration))


class ModelFeedForward(Controller[JointAction]):
    """The paper's appendix B with unit desired inertia, each share of the trials with a model of its own.

    The rigid part's torque is taken at the acceleration qdd_des - B (qd - qd_des) - K (q - q_des), and a residual's at
    qdd_des, which is all feed-forward; a black box, which has nothing else to feed back through, sees the former.
    Memories are warmed up for 500 ticks at the first state.

    Args:
        models: each serves an equal share of the trials, in order.
        stiffness: K, (trials, n) [1/s²]; B is critical.
        velocity: what the models see.
    """

    def __init__(self, models: list[StreamingModel], stiffness: Array, velocity: Velocity):
        self.stiffness, self.damping = stiffness, 2.0 * np.sqrt(stiffness)
        trials = len(stiffness)
        self._shares = [
            (model, slice(i * trials // len(models), (i + 1) * trials // len(models))) for i, model in enumerate(models)
        ]
        self._measured = velocity == "measured"
        self.off = np.zeros(trials, dtype=bool)
        """(trials,) which robots have failed and get no torque any more."""

    def reset(self, state: State) -> None:
        still = np.zeros_like(state.position)
        for model, span in self._shares:
            model.reset()
            model.warm_up(state.position[span], still[span], still[span])

    def command(self, state: State, action: JointAction) -> Command:
        assert action.acceleration is not None
        error, error_d = state.position - action.position, state.velocity - action.velocity
        wanted = action.acceleration - self.stiffness * error - self.damping * error_d
        seen = state.velocity if self._measured else action.velocity
        torque = np.empty_like(wanted)
        for model, span in self._shares:
            q, qd = state.position[span], seen[span]
            ahead = wanted if model.body is None else action.acceleration
            torque[span] = model.stateless(q, qd, wanted[span]) + model.residual(q, qd, ahead[span])
        torque[self.off] = 0.0
        return Command(torque=torque)


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
    points = np.broadcast_to(routes, (*lead[:2], *routes.shape)).reshape(trials, MOVES + 1, robot.n)
    arm = StandIn(robot, trials, seed=seed, noise_seed=seed + 7, settings=settings)
    arm.reset(points[:, 0])
    moves = Moves(points, DURATIONS[speed])
    controller = ModelFeedForward(models, spread, velocity)
    loop = Loop(arm, moves, controller)
    rmse = np.zeros((MOVES, trials, robot.n))
    offset = np.zeros((MOVES, trials, robot.n))
    for index in range(MOVES * moves.ticks):
        done = loop.tick()
        assert isinstance(done.action, JointAction)
        move, tick = divmod(index, moves.ticks)
        rmse[move] += np.square(done.state.position - done.action.position)
        if tick == 0 and move:
            offset[move - 1] = np.abs(done.state.position - points[:, move])
        beyond = np.any((arm.position < robot.lower) | (arm.position > robot.upper), axis=1)
        controller.off |= beyond | arm.diverged
        if np.any(controller.off):
            arm.hold(controller.off, points[:, 0])
        if progress and tick % 200 == 0:
            progress(index / (MOVES * moves.ticks))
    offset[-1] = np.abs(arm.read().position - points[:, -1])
    if progress:
        progress(1.0)
    shape = (*lead, MOVES, robot.n)
    return Tracking(
        rmse=np.sqrt(rmse / moves.ticks).swapaxes(0, 1).reshape(shape),
        offset=offset.swapaxes(0, 1).reshape(shape),
        failed=controller.off.reshape(lead),
    )
