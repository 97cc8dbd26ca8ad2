"""A payload's mass and centre come back with errors that hold, and known masses give the drive gains."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.bench.models.payload_errors import Settings as Bench
from retorque.bench.models.payload_errors import run as bench
from retorque.cli.main import main
from retorque.identify.payload_estimate import estimate_payload
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.inertia import to_vector
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]

MASS, CENTRE, INERTIA = 1.3, np.array([0.02, -0.01, 0.06]), np.diag([0.004, 0.003, 0.002])  # in the mount's frame


def carry(robot: Robot, motion: Motion) -> Motion:
    """The same motion with the payload's torques."""
    mount = robot.payload_mount
    turn = from_quaternion(mount.quaternion)
    ten = to_vector(np.array(MASS), np.array(mount.position) + turn @ CENTRE, turn @ INERTIA @ turn.T)
    rows = RigidBody(robot).regressor(motion.q, motion.qd, motion.qdd)
    own = [link.name for link in robot.moving_links].index(mount.link)
    return replace(motion, torque=motion.torque + rows[..., 10 * own : 10 * own + 10] @ ten)


def pair(simulate: Simulate, gains: np.ndarray, noise: float, seed: int) -> tuple[Robot, Motion, Motion]:
    """An empty and a loaded log, recorded with drive gains that are wrong by `gains`."""
    rng = np.random.default_rng(seed)
    first, second = (simulate("z1", seconds=8.0, seed=2 * seed + k) for k in range(2))
    empty, loaded = first.motion, carry(first.robot, second.motion)

    def record(motion: Motion) -> Motion:
        return replace(motion, torque=motion.torque * gains + noise * rng.standard_normal(motion.torque.shape))

    return first.robot, record(empty), record(loaded)


def test_clean_logs_give_the_payload(simulate: Simulate) -> None:
    robot, empty, loaded = pair(simulate, np.ones(6), 1e-4, 0)
    found = estimate_payload(empty, loaded, robot, Friction(), gain_uncertainty=1e-4, common_uncertainty=1e-4)
    assert abs(found.mass - MASS) < 2e-3 and abs(found.mass - MASS) < 4.0 * found.mass_std
    assert np.allclose(found.centre, CENTRE, atol=1e-3)
    assert np.allclose(np.diagonal(found.inertia), np.diagonal(INERTIA), atol=1e-3)
    assert found.margin > 0.0


def test_errors_hold_when_the_drive_gains_are_wrong(simulate: Simulate) -> None:
    rng = np.random.default_rng(1)
    off, masses = [], []
    for seed in range(12):
        gains = 1.0 + 0.05 * rng.standard_normal(6)
        robot, empty, loaded = pair(simulate, gains, 0.1, seed)
        found = estimate_payload(empty, loaded, robot, Friction(), gain_uncertainty=0.05)
        off.append((found.mass - MASS) / found.mass_std)
        masses.append(found.mass)
        assert np.all(np.abs(found.centre - CENTRE) < 4.0 * found.centre_std)
    assert np.max(np.abs(off)) < 3.0
    assert np.std(masses) < 0.05 * MASS  # better than the gains themselves
    assert 0.3 < np.sqrt(np.mean(np.square(off))) < 2.0


def test_a_known_mass_gives_the_drive_gains(simulate: Simulate) -> None:
    gains = np.array([0.8, 1.25, 0.9, 1.1, 1.3, 0.85])
    robot, empty, loaded = pair(simulate, gains, 0.02, 3)
    found = estimate_payload(empty, loaded, robot, Friction(), known_mass=MASS)
    assert np.isclose(found.mass, MASS, rtol=1e-3)
    error = found.gain_scale * gains - 1.0
    assert np.all(np.abs(error) < np.maximum(3.5 * found.gain_scale_std * gains, 0.02))
    assert np.all(np.abs(error[1:4]) < 0.05)  # the joints that carry the load


def test_nonsense_is_refused(simulate: Simulate) -> None:
    robot, empty, loaded = pair(simulate, np.ones(6), 0.1, 0)
    with pytest.raises(RetorqueError, match="known mass"):
        estimate_payload(empty, loaded, robot, known_mass=-1.0)
    with pytest.raises(RetorqueError, match="uncertainty"):
        estimate_payload(empty, loaded, robot, gain_uncertainty=0.0)


def files(simulate: Simulate, folder: Path, gains: np.ndarray, mass: float = MASS) -> tuple[Path, Path]:
    """An empty and a loaded log of motor currents, with names that say so."""
    _, empty, loaded = pair(simulate, np.ones(6), 0.02, 3)
    if mass != MASS:
        extra = (mass / MASS - 1.0) * (loaded.torque - pair_bare(simulate))
        loaded = replace(loaded, torque=loaded.torque + extra)
    for name, motion in (("empty", empty), ("loaded", loaded)):
        np.savez(folder / f"{name}.npz", time=motion.time, q=motion.q, qd=motion.qd, current=motion.torque / gains)
    return folder / "empty.npz", folder / "loaded.npz"


def pair_bare(simulate: Simulate) -> np.ndarray:
    return simulate("z1", seconds=8.0, seed=7).motion.torque


def weigh(empty: Path, loaded: Path, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    common = ["--robot", "z1", "--friction", "coulomb-viscous", "--json", str(folder / "p.json")]
    code = main(["payload", str(empty), str(loaded), *common, *options])
    return code, json.loads((folder / "p.json").read_text())


GAINS = np.array([12.0, 11.0, 10.0, 9.0, 8.0, 7.0])


def given(gains: np.ndarray) -> list[str]:
    return ["--drive-gains", *map(str, gains)]


def test_a_known_mass_gives_gains_for_the_next_time(simulate: Simulate, tmp_path: Path) -> None:
    empty, loaded = files(simulate, tmp_path, GAINS)
    saved = tmp_path / "gains.json"
    code, content = weigh(empty, loaded, tmp_path, "--known-mass", str(MASS), "--save-gains", str(saved))
    assert code == 0 and content["verdict"] == "trust"
    found = np.array(content["drive_gains"])
    assert np.all(np.abs(found / GAINS - 1.0)[1:4] < 0.05), found  # the joints that the payload loads most
    assert np.all(np.abs(found - GAINS) < 4.0 * np.array(content["drive_gains_std"]) + 0.01)
    code, content = weigh(empty, loaded, tmp_path, "--gains", str(saved))
    assert code == 0 and abs(content["mass_kg"] / MASS - 1.0) < 0.03
    assert content["mass_std_kg"] < 0.05 * MASS  # published gains alone would leave twice as much
    assert 0.0 <= content["mass_variance_share_of_gains"] <= 1.0
    saved.write_text("{}")
    assert main(["payload", str(empty), str(loaded), "--robot", "z1", "--gains", str(saved)]) == 2


def test_swapped_logs_are_refused(simulate: Simulate, tmp_path: Path) -> None:
    empty, loaded = files(simulate, tmp_path, GAINS)
    code, content = weigh(loaded, empty, tmp_path, *given(GAINS))
    assert code == 2 and content["causes"] == ["swapped logs"]
    code, content = weigh(empty, loaded, tmp_path, *given(GAINS))
    assert code == 0 and content["verdict"] == "trust"


def test_more_than_an_arm_can_carry_is_said(simulate: Simulate, tmp_path: Path) -> None:
    empty, loaded = files(simulate, tmp_path, GAINS, mass=40.0)
    code, content = weigh(empty, loaded, tmp_path, *given(GAINS))
    assert code in (2, 3) and "scale" in content["causes"] and "made to carry" in " ".join(content["reasons"])


def test_errors_common_to_the_joints_are_in_the_error_bar() -> None:
    report = bench(Bench(arms=8, seed=1000, workers=1))
    rows = {row.metric: row for row in report.rows}
    assert rows["mass error"].extra["median"] < 9.0
    assert rows["truth inside the 95 % interval"].mean >= 75.0
    assert rows["share of the gains in the variance"].mean > 50.0
