"""Exciting motions keep every limit, begin and end at rest, and tell more than random ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from retorque.bench.models.real_logs import UR10E_GAINS
from retorque.identify.excite.cell import Cell, HalfSpace, read_cell
from retorque.identify.excite.collision import Clearance
from retorque.identify.excite.excitation import Excitation, Excited, _Problem, excite
from retorque.identify.excite.excite_command import ExciteSettings
from retorque.identify.excite.excite_command import excite as command
from retorque.identify.excite.fourier import Fourier, at_rest
from retorque.identify.excite.play import samples, write_csv
from retorque.logs.log import Log
from retorque.logs.motion import join
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Geom, Robot
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


@pytest.mark.parametrize("criterion", ("logdet", "condition", "both"))
def test_the_gradient_is_that_of_the_cost(robot: Robot, criterion: Literal["logdet", "condition", "both"]) -> None:
    """With a floor in the way and torques beyond their limit, so that every part of the cost has a slope."""
    cell = Cell(walls=(HalfSpace(name="floor", normal=(0.0, 0.0, 1.0), offset=-0.05),))
    settings = replace(SETTINGS, criterion=criterion, cell=cell, torque=0.05)
    problem = _Problem(robot, settings)
    rng = np.random.default_rng(3)
    vector = rng.standard_normal(problem.size)
    cost, gradient = problem.slope(vector)
    assert cost == problem.cost(vector)
    for index in rng.choice(problem.size, 6, replace=False):
        aside = np.zeros(problem.size)
        aside[index] = 1e-6
        across = (problem.cost(vector + aside) - problem.cost(vector - aside)) / 2e-6
        assert gradient[index] == pytest.approx(across, rel=0.02, abs=2e-3 * np.abs(gradient).max())


def test_both_criteria_together_give_a_better_condition_than_information_alone(robot: Robot) -> None:
    """At the same first shapes and effort, on average."""
    condition = {
        wanted.criterion: [excite(robot, replace(wanted, seed=seed)).condition for seed in (1, 2, 3)]
        for wanted in (replace(SETTINGS, criterion=name, iterations=8) for name in ("logdet", "both"))
    }
    assert np.mean(np.log(condition["both"])) < np.mean(np.log(condition["logdet"])) - 0.1


@pytest.mark.slow
def test_it_tells_more_than_the_recorded_motion_at_accelerations_that_are_never_above_its_own(shared: Path) -> None:
    """The published 50 s of 12 harmonics on a UR10e: better in condition and in information."""
    ur10e = Robot.load("ur10e")
    path = shared / "data" / "ur10e" / "ur-20_02_12-50sec_12harm.csv.gz"
    rival = join(list(Log((path,), ur10e, rows=slice(355, 5090), drive_gains=UR10E_GAINS).chunks()))
    peak = np.abs(rival.qdd).max(axis=0)
    cell = Cell(acceleration=tuple(peak.tolist()))
    wanted = Excitation(time=50.0, period=50.0, harmonics=12, criterion="both", cell=cell, speed=0.8)
    ours = excite(ur10e, replace(wanted, acceleration=1e3, starts=1, iterations=12, seed=0))
    problem = _Problem(ur10e, wanted)
    log_det, condition = problem.told(problem.layout.matrix(problem.body, rival))
    assert (round(condition, 1), round(log_det, 1)) == (8.5, 399.0)
    assert np.all(ours.acceleration <= peak) and ours.condition < condition and ours.log_det > log_det


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
    assert len(list(command(settings).write_files())) == 2
    assert {path.name for path in out.iterdir()} == {"z1_excitation.csv", "z1_excitation.png"}
    with pytest.raises(RetorqueError, match="at least two harmonics"):
        command(ExciteSettings(robot="z1", harmonics=1, out=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RetorqueError, match="name a folder"):
            command(ExciteSettings(robot="z1", out=out))


def test_a_wrist_below_the_floor_is_seen_and_the_bolted_link_is_not() -> None:
    ur = Robot.load("ur10e")
    floor = Clearance(ur, 0.02, Cell().with_floor(0.0))
    down = np.array([0.0, 0.4, 0.6, -1.57, -1.57, 0.0])
    assert floor.smallest(down[None]) < 0.0 < Clearance(ur, 0.02).smallest(down[None])
    assert "cell/floor" in floor.nearest(down[None])[1]
    assert floor.smallest(np.asarray(ur.home)[None]) > 0.0


def test_distances_to_walls_and_things_are_those_of_geometry(robot: Robot) -> None:
    """A ball at the hand: its distance to planes and a box is known exactly."""
    tool = Geom(shape="sphere", size=(0.05,), position=(0.3, 0.0, 0.0))
    body, q = RigidBody(robot), np.asarray(robot.home, dtype=float)
    at, facing = body.frame_pose(robot.end_effector, q)
    centre = at + facing @ np.array([0.3, 0.0, 0.0])
    wall = HalfSpace(name="wall", normal=(-1.0, 0.0, 0.0), offset=float(-centre[0] - 0.06))
    found, pair = Clearance(robot, 0.05, Cell(walls=(wall,), tool=tool)).nearest(q[None])
    assert np.isclose(found, 0.01, atol=1e-9) and set(pair) == {"cell/wall", "cell/tool"}
    box = Geom(shape="box", size=(0.1, 0.1, 0.1), position=tuple(centre + np.array([0.0, 0.0, 0.16])))
    found, pair = Clearance(robot, 0.05, Cell(things=(("shelf", box),), tool=tool)).nearest(q[None])
    assert np.isclose(found, 0.01, atol=1e-6) and "cell/shelf" in pair
    with pytest.raises(RetorqueError, match="overlap by"):
        Clearance(robot, 0.05, Cell(walls=(replace(wall, offset=float(-centre[0])),), tool=tool))


CELL = """
floor = 0.0
[[wall]]
name = "fence"
normal = [-2.0, 0.0, 0.0]
offset = -0.6
[[thing]]
name = "table"
shape = "box"
size = [0.2, 0.2, 0.02]
position = [0.5, 0.3, 0.02]
[tool]
shape = "capsule"
size = [0.02, 0.05]
position = [0.05, 0.0, 0.0]
[limits]
velocity = 1.0
acceleration = [3.0, 2.0, 3.0, 4.0, 4.0, 4.0]
lower = -2.5
"""


def test_a_motion_keeps_out_of_everything_in_its_cell(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "cell.toml"
    path.write_text(CELL)
    cell = read_cell(path)
    assert [wall.name for wall in cell.walls] == ["fence", "floor"] and cell.walls[0].normal == (-1.0, 0.0, 0.0)
    out = tmp_path / "out"
    every: tuple[Literal["urscript", "franka", "ros"], ...] = ("urscript", "franka", "ros")
    settings = ExciteSettings(
        robot="z1", time=6.0, harmonics=3, starts=1, iterations=1, rate=200.0, cell=path, controllers=every, out=out
    )
    assert all(not isinstance(written, Exception) for _, written in command(settings).write_files())
    table = np.genfromtxt(out / "z1_excitation.csv", delimiter=",", names=True)
    time, q, qd, qdd = (
        table["time"],
        *(np.stack([table[f"{stem}{k}"] for k in range(1, 7)], axis=1) for stem in ("q", "qd", "qdd")),
    )
    assert Clearance(robot, 0.02, cell).smallest(q) > 0.0
    assert (
        np.all(q >= -2.5) and np.all(np.abs(qd) <= 1.0) and np.all(np.abs(qdd) <= 1.001 * np.array(cell.acceleration))
    )
    check_controller_files(robot, out, time, q, qd)


def check_controller_files(robot: Robot, out: Path, time: np.ndarray, q: np.ndarray, qd: np.ndarray) -> None:
    """What each controller would play is the motion of the CSV."""
    script = (out / "z1_excitation.script").read_text()
    targets = np.array([
        [float(value) for value in line.split("[")[1].split("]")[0].split(",")]
        for line in script.splitlines() if line.startswith("  servoj(")
    ])  # fmt: skip
    wanted = np.stack([np.interp(0.008 * np.arange(len(targets) - 1), time, q[:, j]) for j in range(robot.n)], axis=1)
    assert np.allclose(targets[:-1], wanted, atol=2e-4) and np.allclose(targets[-1], robot.home, atol=1e-6)
    assert (
        script.startswith("def ") and script.rstrip().endswith("end") and np.abs(np.diff(targets, axis=0)).max() < 0.01
    )
    franka = json.loads((out / "z1_excitation.franka.json").read_text())
    played, speed = np.array(franka["position_rad"]), np.array(franka["velocity_rad_s"])
    assert franka["joint_names"] == list(robot.joint_names) and np.allclose(np.diff(franka["time_s"]), 1e-3, atol=1e-6)
    assert np.allclose(np.gradient(played, 1e-3, axis=0)[1:-1], speed[1:-1], atol=2e-3)  # continuous, as libfranka asks
    assert np.allclose(speed[[0, -1]], 0.0, atol=1e-9) and np.allclose(played[0], robot.home, atol=1e-8)
    yaml = pytest.importorskip("ruamel.yaml")
    lines = (out / "z1_excitation.ros.yaml").read_text().splitlines()
    message = yaml.YAML(typ="safe").load("\n".join(lines[: 11 + 4 * 60]))  # the parser is slow
    assert (
        lines[4].startswith('- "')
        and set(message) == {"header", "joint_names", "points"}
        and message["joint_names"] == list(robot.joint_names)
    )
    stamps = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in message["points"]]
    assert stamps[0] == 3.0 and np.all(np.diff(stamps) > 0.0)
    velocity = np.array([p["velocities"] for p in message["points"]])
    at = np.clip(np.array(stamps) - 3.0, 0.0, time[-1])
    wanted = np.stack([np.interp(at, time, qd[:, j]) for j in range(robot.n)], axis=1)
    assert np.allclose(velocity, wanted, atol=2e-3) and len(message["points"][0]["accelerations"]) == robot.n


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flor = 0.0", "did you mean 'floor'"),
        ("[[wall]]\nnormal = [0, 0, 0]\noffset = 1.0", "normal"),
        ("[[thing]]\nshape = 'cone'\nsize = [1.0]", "unknown shape"),
        ("[tool]\nshape = 'box'\nsize = [0.1, 0.1]", "3 numbers"),
        ("[limits]\nvelocity = [1.0, 2.0]", "one number or one a joint"),
        ("[limits]\nlower = 2.0", "outside of the cell"),
        ("floor = 0.5", "overlap by"),
        ("floor = ", "cannot read"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "cell.toml"
    path.write_text(text)
    with pytest.raises(RetorqueError, match=words):
        command(ExciteSettings(robot="z1", cell=path, out=tmp_path / "out", starts=1, iterations=0))
