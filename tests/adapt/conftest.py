"""A batch of robots that swing, each in its own way, and what an adapter answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from retorque.loop.adapter import Adapter
from retorque.loop.learner import InlineLearner
from retorque.robots.robot import Robot
from retorque.robots.state import State

Spoil = Callable[[int, State, np.ndarray], None]


def swing(robot: Robot, trials: int, tick: int, timestep: float, seed: int) -> tuple[State, np.ndarray]:
    """Reports (trials, n) and nominal torques at a tick; every trial has a motion of its own."""
    rng = np.random.default_rng(seed)
    rate, phase = rng.uniform(1.0, 4.0, (2, trials, robot.n))
    angle = rate * tick * timestep + phase
    state = State(
        tick * timestep, robot.home + 0.3 * np.sin(angle), 0.3 * rate * np.cos(angle), 3.0 * np.sin(2.0 * angle)
    )
    return state, 3.0 * np.cos(angle)


@pytest.fixture(scope="session")
def answers() -> Callable[..., np.ndarray]:
    """The torques (ticks, trials, n) that an adapter sends along a swing."""

    def run(
        adapter: Adapter, trials: int, ticks: int, seed: int = 0, spoil: Spoil | None = None, first: int = 0
    ) -> np.ndarray:
        learner, sent = InlineLearner(adapter), []
        for tick in range(first, first + ticks):
            state, nominal = swing(adapter.robot, trials, tick, adapter.timestep, seed)
            if spoil is not None:
                spoil(tick, state, nominal)
            adapter.observe(state)
            learner.turn()
            with np.errstate(all="ignore"):  # a spoilt trial may be anything, on its own
                sent.append(np.array(adapter.correct(state, nominal)))
        return np.array(sent)

    return run
