"""The recorded UR10e and Panda reach the published figures, with links that can exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.bench.models.real_logs import (
    PANDA_RMSE,
    UR10E_GAINS,
    UR10E_RELATIVE,
    Settings,
    panda_logs,
    run,
    ur10e_logs,
)
from retorque.identify.payload_estimate import estimate_payload
from retorque.identify.regression.choose import choose_friction
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter
from retorque.physics.inertia import to_vector
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


def test_both_robots_reach_their_figures(shared: Path) -> None:
    report = run(Settings(data=shared / "data", methods=("sdp",)))
    errors = {
        name: [row for row in report.rows if row.robot == name and row.unit != "s"] for name in ("ur10e", "panda")
    }
    assert [row.paper for row in errors["ur10e"]] == list(UR10E_RELATIVE)
    assert [row.paper for row in errors["panda"]] == list(PANDA_RMSE)
    for row in (*errors["ur10e"], *errors["panda"]):
        assert row.paper is not None and row.mean <= row.paper, row
        assert row.extra["eigenvalue"] > 0.0


def test_the_friction_model_is_chosen_on_training_data(shared: Path) -> None:
    for name, folder, logs in (("ur10e", "ur10e", ur10e_logs), ("panda", "panda_exciting", panda_logs)):
        robot = Robot.load(name)
        train, _ = logs(shared / "data" / folder, robot, Filter())
        assert choose_friction(train, robot)[0] == "presliding"


def test_corrupt_and_narrow_logs_are_read(shared: Path) -> None:
    robot = Robot.load("ur10e")
    folder = shared / "data" / "ur10e"
    corrupt = Log((folder / "ur-19_09_27-11_32_02.csv.gz",), robot, drive_gains=UR10E_GAINS)
    motion = corrupt.load()
    assert isinstance(motion, Motion)
    assert corrupt.dropped.counts["rows with impossible values"] > 5 and len(motion) > 1000
    assert np.max(np.abs(motion.q)) < 2.0 * np.pi and np.max(np.abs(motion.qd)) < 3.0
    narrow = Log((folder / "ur-19_09_27-11_28_22.csv.gz",), robot, drive_gains=UR10E_GAINS)
    short = narrow.load()
    assert isinstance(short, Motion) and len(short) > 500 and narrow.dropped.total == 0


def test_without_the_data_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="--data"):
        run(Settings(data=tmp_path / "nowhere"))
    with pytest.raises(RetorqueError, match="neither"):
        run(Settings(data=tmp_path))


def test_a_payload_on_a_real_gearbox(shared: Path) -> None:
    """Real currents and friction; only the payload's own torque is added by calculation."""
    robot = Robot.load("ur10e")
    fourier, points = ur10e_logs(shared / "data" / "ur10e", robot, Filter())
    half = len(fourier) // 2
    ten = to_vector(np.array(3.0), np.array([0.0, 0.02, 0.12]), 0.01 * np.eye(3))  # in wrist 3's own frame
    body = RigidBody(robot)
    for empty, bare in ((fourier[:half], fourier[half:]), (fourier, points)):
        added = body.regressor(bare.q, bare.qd, bare.qdd)[..., -10:] @ ten
        found = estimate_payload(empty, replace(bare, torque=bare.torque + added), robot)
        assert abs(found.mass - 3.0) < 0.05 * 3.0
        assert abs(found.mass - 3.0) < 2.0 * found.mass_std < 0.6  # published gains: 8 % together
        assert found.margin > 0.0
