"""Exciting motions keep every limit, begin and end at rest, and tell more than random ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.identify.excite.collision import Clearance
from retorque.identify.excite.excitation import Excitation, Excited, excite
from retorque.identify.excite.excite_command import ExciteSettings
from retorque.identify.excite.excite_command import excite as command
from retorque.identify.excite.fourier import Fourier, at_rest
from retorque.identify.excite.play import samples, write_csv
from retorque.logs.log import Log
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

SETTINGS = Excitation(time=8.0, harmonics=3, starts=1, iterations=3, seed=1)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load("z1")


@pytest.fixture(scope="module")
def found(robot: Robot) -> Excited:
    return excite(robot, SETTINGS)


def test_fourier_derivatives_match_finite_differences() -> None:
    rng = np.random.default_rng(0)
    a, b = at_rest(rng.standard_normal((3, 4)), rng.standard_normal((3, 4)))
    path = Fourier(a=a, b=b, centre=np.zeros(3), period=7.0)
    time, h = np.linspace(0.0, 7.0, 50), 1e-5
    q, qd, qdd = path.at(time)
    assert np.allclose((path.at(time + h)[0] - path.at(time - h)[0]) / (2 * h), qd, atol=1e-7)
    assert np.allclose((path.at(time + h)[1] - path.at(time - h)[1]) / (2 * h), qdd, atol=1e-7)
    assert np.allclose(qd[[0, -1]], 0.0, atol=1e-12) and np.allclose(qdd[[0, -1]], 0.0, atol=1e-12)
    assert np.allclose(q[0], q[-1])


def test_every_limit_holds_all_the_way(robot: Robot, found: Excited) -> None:
    time, q, qd, qdd, exciting = samples(found, robot, 250.0)
    assert np.all(q >= robot.lower) and np.all(q <= robot.upper)
    speed = SETTINGS.speed * robot.velocity_limit
    assert np.all(np.abs(qd) <= 1.001 * speed)
    assert np.all(np.abs(qdd[exciting]) <= 1.001 * SETTINGS.acceleration * speed)
    torque = RigidBody(robot).inverse_dynamics(q, qd, qdd)
    assert np.max(np.abs(torque) / robot.torque_limit) <= 1.03 * SETTINGS.torque
    assert Clearance(robot, 0.02).smallest(q) > 0.0
    assert np.allclose(q[[0, -1]], robot.home) and np.allclose(qd[[0, -1]], 0.0)
    assert np.max(np.abs(np.diff(q, axis=0) * 250.0 - qd[1:])) < 0.2  # one smooth motion, no jump between its parts
    assert np.isclose(np.sum(exciting) / 250.0, SETTINGS.time, atol=0.1) and np.allclose(np.diff(time), 1 / 250.0)


def test_it_tells_more_than_a_random_motion_and_is_repeatable(robot: Robot, found: Excited) -> None:
    assert found.log_det > found.log_det_before + 1.0
    again = excite(robot, SETTINGS)
    assert np.array_equal(again.trajectory.a, found.trajectory.a) and again.log_det == found.log_det


def test_links_that_overlap_are_seen() -> None:
    panda = Robot.load("panda")
    folded = np.array([0.0, 1.7, 0.0, -3.05, 0.0, 0.0, 0.0])
    assert Clearance(panda, 0.02).smallest(np.asarray(panda.home)[None]) > 0.0
    assert Clearance(panda, 0.02).smallest(folded[None]) < 0.0


def test_the_csv_reads_back_as_a_log(robot: Robot, found: Excited, tmp_path: Path) -> None:
    rows = samples(found, robot, 100.0)
    path = write_csv(tmp_path / "play.csv", rows)
    head = path.read_text().splitlines()[0].split(",")
    assert head[0] == "time" and head[1:7] == [f"q{k}" for k in range(1, 7)] and head[-1] == "exciting"
    # played without a torque column it is no log yet, and says so
    with pytest.raises(RetorqueError, match="torque or current"):
        Log((path,), robot).load()


def test_command_writes_motion_and_picture(tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = ExciteSettings(robot="z1", time=5.0, harmonics=2, starts=1, iterations=0, rate=50.0, out=out)
    assert len(command(settings).write_files()) == 2
    assert {path.name for path in out.iterdir()} == {"z1_excitation.csv", "z1_excitation.png"}
    with pytest.raises(RetorqueError, match="at least two harmonics"):
        command(ExciteSettings(robot="z1", harmonics=1, out=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RetorqueError, match="name a folder"):
            command(ExciteSettings(robot="z1", out=out))
