"""Every adapter under the supervisor, driven with random garbage: finite, within limits, every rejection coded."""

import os

import numpy as np
import pytest

from retorque.adapt import ADAPTERS, make
from retorque.loop.health import Health
from retorque.loop.learner import InlineLearner
from retorque.loop.supervisor import Supervisor
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

TICKS = 10_000 if os.environ.get("RETORQUE_SLOW") else 2_500
TRIALS = 2
BAD_TRIAL = 0
"""The other trial's reports stay clean."""

ABSURD = Health.BAD_STATE | Health.OUT_OF_RANGE | Health.VELOCITY_REPORT
"""What answers a number that no joint can have: no report, one out of range, or one that contradicts its position."""
WEIRD = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e12, -1e6])


def _spoil(rng, kind, robot, state, nominal):
    """Ruin one thing about the first trial's report or torque, and say which code must answer."""
    joint, value = rng.integers(robot.n), rng.choice(WEIRD)
    if kind == "position":
        state.position[BAD_TRIAL, joint] = value
        return Health.BAD_STATE if not np.isfinite(value) else ABSURD
    if kind == "velocity":
        state.velocity[BAD_TRIAL] = value
        return Health.BAD_STATE if not np.isfinite(value) else ABSURD
    if kind == "torque":
        state.torque[BAD_TRIAL, joint] = value
        return Health.BAD_STATE if not np.isfinite(value) else Health.SATURATED
    if kind == "everything":
        for row in (state.position[BAD_TRIAL], state.velocity[BAD_TRIAL], state.torque[BAD_TRIAL]):
            row[:] = rng.standard_normal(robot.n) * 10.0 ** rng.uniform(2.0, 300.0, robot.n)
        return Health.OUT_OF_RANGE | Health.BAD_STATE
    if kind == "nominal":
        nominal[BAD_TRIAL, joint] = rng.choice([np.nan, np.inf, -np.inf])
        return Health.BAD_NOMINAL
    if kind == "huge nominal":
        nominal[BAD_TRIAL, joint] = rng.choice([1e300, -1e300, 1e9])
        return Health.TORQUE_LIMIT
    if kind == "clock":
        state.time = rng.choice([np.nan, np.inf, 0.0])
        return Health.BAD_CLOCK | Health.GAP  # a gap, when the clock is taken to have been set anew
    return Health.OK


KINDS = ("clean", "position", "velocity", "torque", "everything", "nominal", "huge nominal", "clock")


def _has_weights(name):
    """Learned adapters can be driven only where their weights are on board."""
    if ".tam." not in ADAPTERS[name][0]:
        return True
    try:
        make(name, Robot.load("panda"), 1)
    except RetorqueError as error:
        assert "weights" in str(error)
        return False
    return True


@pytest.mark.parametrize("name", sorted(filter(_has_weights, ADAPTERS)))
def test_garbage_never_gets_through(name):
    robot = Robot.load("panda")
    truth = Parameters.sample(robot, profile_of(robot), TRIALS, 5)
    robot = truth[0].on_card(robot) if name == "identified" else robot
    supervisor = Supervisor(make(name, robot, TRIALS, seed=1, truth=lambda: truth))
    learner, rng = InlineLearner(supervisor), np.random.default_rng(7)
    rate, phase = rng.uniform(1.0, 4.0, (2, TRIALS, robot.n))
    kind, left, answered = "clean", 0, dict.fromkeys(KINDS, 0)
    worst = 0.0
    for tick in range(TICKS):
        clock = tick * 1e-3
        if left == 0:  # garbage comes in bursts of all lengths
            kind = rng.choice(KINDS, p=(0.44, *(0.08,) * 7))
            left = int(np.ceil(10.0 ** rng.uniform(0.0, 2.5)))
        left -= 1
        angle = rate * clock + phase
        state = State(clock, robot.home + 0.3 * np.sin(angle), 0.3 * rate * np.cos(angle), 5.0 * np.sin(2.0 * angle))
        nominal = 5.0 * np.cos(angle)
        expected = _spoil(rng, kind, robot, state, nominal)
        supervisor.observe(state)
        learner.turn()
        sent = supervisor.correct(state, nominal)
        worst = max(worst, float(np.max(np.abs(sent) / robot.torque_limit)))  # NaN would fail below
        assert np.all(np.isfinite(sent)), (tick, kind)
        if expected:
            assert supervisor.health[BAD_TRIAL] & expected, (
                tick,
                kind,
                Health.names(int(supervisor.health[BAD_TRIAL])),
            )
            answered[kind] += 1
        if kind not in ("clock", "clean"):
            rejected = Health.BAD_STATE | Health.OUT_OF_RANGE | Health.BAD_NOMINAL | Health.SATURATED
            assert not supervisor.health[1 - BAD_TRIAL] & rejected, (tick, kind)
    assert worst <= 1.0
    assert all(count > 0 for kind, count in answered.items() if kind != "clean"), answered
    assert supervisor.counts[Health.FAULT] == 0
