"""Workers as processes: plans and models come, and come back after a kill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.plan.plan_processes import LONGEST, ProcessWorkers, model_of, plan_of, samples_of
from retorque.tasks.mpc.real_time import parts_of, run_real_time
from retorque.tasks.mpc.run import RunSettings
from retorque.work.errors import RetorqueError


def test_plans_models_and_samples_come_through_arrays() -> None:
    arrays = {
        "head": np.array([1.0, 0.1, 7.5, 3, 9, 4]),
        "states": np.arange(12.0).reshape(3, 4),
        "inputs": np.ones((2, 1)),
        "gains": np.ones((2, 1, 4)),
    }
    plan = plan_of(arrays)
    assert (plan.horizon, plan.version, plan.parameters, plan.iterations) == (2, 9, 4, 3) and plan.states.shape == (
        3,
        4,
    )
    head = np.array([0.5, 0.9, 0.0, 1.0, 12, 5])
    model = model_of({"head": head, "p": np.ones(2), "deviation": np.zeros(2), "offset": np.ones(4)})
    assert model.changed and not model.exploring and model.window == 12 and model.version == 5
    valid = np.ones(3, dtype=bool)
    rows = {"head": np.array([2.0, 30]), "states": np.ones((3, 4)), "inputs": np.ones((2, 1)), "valid": valid}
    samples = samples_of(rows)
    assert samples.states.shape == (3, 4) and samples.inputs.shape == (2, 1) and samples.valid.all()


def test_killed_workers_are_started_again_and_limits_hold() -> None:
    kills = {120: "planner", 160: "modeller"}
    trace = run_real_time("cartpole", RunSettings(seed=1000), 4.0, kill=lambda tick: kills.get(tick, ""))
    assert trace.ticks == 400 and trace.models >= 1 and trace.largest <= 1.0
    assert trace.restarts["planner"] >= 1 and trace.restarts["modeller"] >= 1


@pytest.mark.slow
def test_ten_kills_of_each_and_a_plan_is_back_in_a_second() -> None:
    kills = {150 + 140 * k: ("planner", "modeller")[k % 2] for k in range(20)}
    trace = run_real_time("cartpole", RunSettings(seed=1000), 30.0, kill=lambda tick: kills.get(tick, ""))
    assert trace.missed <= 0.01 * trace.ticks and trace.starved == 0 and trace.largest <= 1.0
    assert len(trace.gaps) == 20 and max(trace.gaps) < 1.0


def test_an_oracle_cannot_work_elsewhere() -> None:
    with pytest.raises(RetorqueError, match="told the truth"):
        parts_of("cartpole", "paper", RunSettings(policy="oracle"))


def test_a_horizon_longer_than_the_shared_plan_is_refused() -> None:
    parts = parts_of("cartpole", "paper", RunSettings())
    ilqr = parts.planner.ilqr
    ilqr.settings = replace(ilqr.settings, horizon=LONGEST)
    ProcessWorkers(lambda: parts, parts)
    ilqr.settings = replace(ilqr.settings, horizon=LONGEST + 1)
    with pytest.raises(RetorqueError, match="does not fit"):
        ProcessWorkers(lambda: parts, parts)
