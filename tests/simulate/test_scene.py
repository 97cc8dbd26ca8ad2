"""Scenes: contact as strong as it says, things that roll and fall as they should, nothing where nothing touches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.scene import Ball, Board, Box, Cylinder, Floor, Object, Scene, Wall
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

AWAY: list[Object] = [
    Floor(position=(0.0, 0.0, -3.0)),
    Box(name="box", size=(0.1, 0.1, 0.1), mass=1.0, position=(3.0, 0.0, 3.0)),
    Wall(position=(5.0, 0.0, 0.0), stiffness=5e3),
]


def _push(target: Target, torque: float, ticks: int) -> None:
    for _ in range(ticks):
        target.write(Command(torque=np.full(target.position.shape, torque)))


@pytest.mark.parametrize("name", ("panda", "leap_hand"))
def test_where_nothing_touches_a_scene_changes_no_bit(name: str) -> None:
    robot = Robot.load(name)
    profile = profile_of(robot)
    hidden = Parameters.sample(robot, profile, 3, 1000)
    sensors = SensorSettings.sample(profile, 3, 1000)
    plain, among = (
        Target(robot, hidden, sensors=sensors, scene=scene, threads=1) for scene in (None, Scene(objects=AWAY))
    )
    rng = np.random.default_rng(1000)
    limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 5.0)
    for _ in range(100):
        command = Command(torque=0.1 * limit * rng.normal(size=(3, robot.n)))
        for target in (plain, among):
            target.write(command)
        one, two = plain.read(), among.read()
        np.testing.assert_array_equal(one.position, two.position)
        np.testing.assert_array_equal(one.velocity, two.velocity)
    assert one.objects is None and two.objects is not None and two.objects.shape == (3, 1, 13)


@pytest.mark.parametrize("damping", (None, 80.0))
def test_a_wall_pushes_back_as_its_spring_and_damper_say(damping: float | None, slider: Robot) -> None:
    robot = slider
    scene = Scene(objects=[Wall(stiffness=5000.0, damping=damping)])
    target = Target(robot, Parameters.ideal(robot, 2), scene=scene, threads=1)
    target.place("wall", Wall.facing(np.array([0.1, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0])))
    rows = []
    for _ in range(3000):
        x, v = float(target.position[0, 0]), float(target.velocity[0, 0])
        _push(target, 20.0, 1)
        rows.append((x - 0.05, v, (target.velocity[0, 0] - v) / 1e-3, target.contact_force("wall")[0, 0]))
    table = np.array(rows)
    touching = table[:, 3] > 0.5
    fit = np.linalg.lstsq(table[touching, :3], table[touching, 3], rcond=None)[0]
    used = 50.0 if damping is None else damping
    # stiffness, damping, and the small mass that keeps the damper stable: 2 x damping x timestep
    np.testing.assert_allclose(fit, [5000.0, used, 2e-3 * used], rtol=1e-6)
    assert table[-1, 3] == pytest.approx(20.0, rel=1e-4)
    assert target.position[1, 0] - 0.05 == pytest.approx(20.0 / 5000.0, rel=1e-4)
    np.testing.assert_allclose(target.contact_force("carriage", by="wall"), -target.contact_force("wall"))
    np.testing.assert_allclose(target.contact_force("robot"), target.contact_force("carriage"))


def test_springs_stay_true_when_masses_change(slider: Robot) -> None:
    robot = slider
    target = Target(
        robot, Parameters.ideal(robot), scene=Scene(objects=[Wall(stiffness=5e3, damping=500.0)]), threads=1
    )
    target.set_parameters(replace(target.parameters, payload_mass=np.array(20.0)))
    target.place("wall", Wall.facing(np.array([0.06, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0])))
    _push(target, 30.0, 4000)
    assert target.position.shape == (1,)
    assert target.position[0] - 0.01 == pytest.approx(30.0 / 5000.0, rel=1e-3)


def test_a_ball_rolls_down_a_board_at_five_sevenths(slider: Robot) -> None:
    """A solid ball that rolls without slipping accelerates at 5/7 g sin(slope)."""
    slope = 0.1
    tilt = (float(np.cos(slope / 2)), 0.0, float(np.sin(slope / 2)), 0.0)
    normal = np.array([np.sin(slope), 0.0, np.cos(slope)])
    radius = 0.0225
    start = tuple(float(v) for v in normal * (0.01 + radius))
    scene = Scene(
        objects=[Board(size=(2.0, 2.0, 0.01), quaternion=tilt), Ball(radius=radius, mass=0.05, position=start)]
    )
    robot = slider
    target = Target(robot, Parameters.ideal(robot, 1), scene=scene, threads=1)
    target.reset(np.full((1, 1), 5.0))
    rolled, spin = [], []
    for _ in range(600):
        _push(target, 0.0, 1)
        state = target.read()
        assert state.objects is not None
        rolled.append(state.objects[0, 0, 7:10] @ np.array([np.cos(slope), 0.0, -np.sin(slope)]))
        spin.append(state.objects[0, 0, 11])
    acceleration = (rolled[-1] - rolled[200]) / 0.399
    assert acceleration == pytest.approx(5.0 / 7.0 * 9.81 * np.sin(slope), rel=0.01)
    assert spin[-1] * radius == pytest.approx(rolled[-1], rel=0.01)  # angular velocity in world axes, about +y


def test_a_box_slides_or_stays_by_its_friction_trial_by_trial(slider: Robot) -> None:
    robot = slider
    scene = Scene(objects=[Floor(friction=0.0), Box(name="box", size=(0.05, 0.05, 0.05), mass=0.5, friction=0.5)])
    target = Target(robot, Parameters.ideal(robot, 2), scene=scene, threads=1)
    target.reset(np.full((2, 1), 9.0))
    target.vary("box", mass=np.array([0.5, 2.0]), friction=np.array([0.5, 0.2]))
    target.place("box", np.array([0.0, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    _push(target, 0.0, 100)
    state = target.read()
    assert state.objects is not None
    np.testing.assert_allclose(1.0 - state.objects[:, 0, 7], 9.81 * 0.1 * np.array([0.5, 0.2]), rtol=0.05)
    lifted = []
    for _ in range(1000):
        _push(target, 0.0, 1)
        lifted.append(target.contact_force("box", by="floor")[:, 2])
    np.testing.assert_allclose(np.mean(lifted, axis=0), 9.81 * np.array([0.5, 2.0]), rtol=0.02)


def test_a_mounted_board_carries_its_weight_and_what_lies_on_it() -> None:
    robot = Robot.load("panda")
    board = Board(mount="end_effector", position=(0.0, 0.0, 0.02), size=(0.09, 0.09, 0.005), mass=0.3)
    target = Target(robot, Parameters.ideal(robot, 1), scene=Scene(objects=[board]), threads=1)
    bare = Target(robot, Parameters.ideal(robot, 1), threads=1)
    for _ in range(20):
        for each in (target, bare):
            each.write(Command(torque=np.zeros((1, 7))))
    assert np.abs(target.position - bare.position).max() > 1e-6
    with pytest.raises(RetorqueError, match="mounted"):
        target.place("board", np.zeros(7))


@pytest.mark.parametrize(
    ("objects", "sentence"),
    [
        ([Ball(radius=0.1, mass=1.0), Ball(radius=0.1, mass=1.0)], "name of its own"),
        ([Ball(radius=0.1, name="carriage")], "name of its own"),
        ([Ball(radius=-0.1)], "size"),
        ([Ball(radius=0.1, mass=float("nan"))], "mass"),
        ([Box(name="b", size=(0.1, 0.1, 0.1), mass=1.0, inertia=(1.0, 1.0, 3.0))], "inertia"),
        ([Wall(damping=3.0)], "stiffness"),
        ([Wall(stiffness=0.0)], "positive"),
        ([Floor(mass=1.0)], "cannot move"),
        ([Board(mount="hand")], "unknown frame"),
        ([Cylinder(name="c", radius=0.1, half_length=0.1, quaternion=(2.0, 0.0, 0.0, 0.0))], "unit quaternion"),
    ],
)
def test_impossible_scenes_are_refused(objects: list[Object], sentence: str, slider: Robot) -> None:
    robot = slider
    with pytest.raises(RetorqueError, match=sentence):
        Target(robot, Parameters.ideal(robot, 1), scene=Scene(objects=objects))


def test_unknown_names_are_refused(slider: Robot) -> None:
    robot = slider
    target = Target(robot, Parameters.ideal(robot, 1), scene=Scene(objects=[Wall()]))
    with pytest.raises(RetorqueError, match="wall"):
        target.contact_force("wal")
    with pytest.raises(RetorqueError, match="wall"):
        target.place("ball", np.zeros(7))
    with pytest.raises(RetorqueError, match="scene"):
        Target(robot, Parameters.ideal(robot, 1)).contact_force("wall")
