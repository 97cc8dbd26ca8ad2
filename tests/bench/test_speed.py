"""The speed bench measures every path; how fast is not a test's business."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retorque.bench.speed import Settings, run
from retorque.errors import RetorqueError

TINY = Settings(robot="z1", adapters=("direct", "oracle", "tam"), ticks=100, batch=4, repeats=2)


def test_rows_hold_percentiles_and_rates() -> None:
    rows = {row.method: row for row in run(TINY).rows}
    assert {"joint impedance torque", "rigid body inverse dynamics", "direct correct", "oracle correct"} <= set(rows)
    assert {"tam correct", "tam learn", "tam adaptor", "tam encoder update"} <= set(rows)
    for row in rows.values():
        assert row.mean > 0.0 and row.robot == "z1"
        if row.unit == "us":
            assert row.mean <= row.extra["p99"] <= row.extra["p99.9"]
            assert row.ci95[0] <= row.mean <= row.ci95[1]
    assert sum(row.unit == "steps/s" for row in rows.values()) == 2


@pytest.mark.parametrize("change", ({"adapters": ("drect",)}, {"ticks": 1}, {"batch": 0}, {"robot": "g1"}), ids=str)
def test_bad_settings_are_refused(change) -> None:
    with pytest.raises(RetorqueError):
        run(replace(TINY, **change))
