"""The speed bench measures every path; how fast is not a test's business."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.bench.models.hybrid_speed import hybrid_tick, random_hybrid
from retorque.bench.speed import Settings, run
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

TINY = Settings(robot="z1", adapters=("direct", "oracle", "tam"), ticks=100, batch=4, repeats=2)


def test_rows_hold_percentiles_and_rates() -> None:
    rows = {row.method: row for row in run(TINY).rows}
    assert {"joint impedance torque", "rigid body inverse dynamics", "direct", "oracle"} <= set(rows)
    assert "hybrid feed-forward (rigid body + LSTM), warmed up" in rows
    assert {"tam", "tam supervised", "tam learn", "tam adaptor", "tam encoder update"} <= set(rows)
    assert rows["tam supervised"].mean > rows["tam"].mean  # the adapter's own time is part of it
    assert rows["tam supervised"].extra["of_bare"] == pytest.approx(rows["tam supervised"].mean / rows["tam"].mean)
    for row in rows.values():
        assert row.mean > 0.0 and row.robot == "z1"
        if row.unit == "us":
            assert row.mean <= row.extra["p99"] <= row.extra["p99.9"]
            assert row.ci95[0] <= row.mean <= row.ci95[1]
    assert sum(row.unit == "steps/s" for row in rows.values()) == 2


def test_the_timed_hybrid_is_the_papers_size_and_remembers() -> None:
    robot = Robot.load("panda")
    model = random_hybrid(robot, 0)
    # the learnable arrays of Table IV's LSTM residual
    assert sum(value.size for value in model._network.values()) == 33358
    assert model.torque(robot.home, np.zeros(7), np.zeros(7)).shape == (7,)
    first, later = (hybrid_tick(robot, seed)() for seed in (0, 1))
    assert np.all(np.isfinite(first)) and not np.allclose(first, later)
    cold, warm = random_hybrid(robot, 0), random_hybrid(robot, 0)
    warm.warm_up(robot.home, np.zeros(7), np.zeros(7))
    still = (robot.home, np.zeros(7), np.zeros(7))
    assert np.allclose(warm.torque(*still), warm.torque(*still), atol=1e-3)  # settled
    assert not np.allclose(cold.torque(*still), warm.torque(*still), atol=1e-3)


@pytest.mark.parametrize("change", ({"adapters": ("drect",)}, {"ticks": 1}, {"batch": 0}, {"robot": "g1"}), ids=str)
def test_bad_settings_are_refused(change) -> None:
    with pytest.raises(RetorqueError):
        run(replace(TINY, **change))
