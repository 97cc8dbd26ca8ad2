"""Things around a robot: masses, poses and names that could be meant, and pictures of them."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.simulate.cameras.camera import SKY, Camera, View
from retorque.simulate.motor_target import MotorServo, MotorTarget, MotorTruth
from retorque.simulate.scene import Ball, Board, Box, Cylinder, Floor, Object, Scene, Wall
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

SHAPES = {
    "box": (Box(name="a", size=(0.1, 0.2, 0.3), mass=2.0), '<geom type="box" size="0.1 0.2 0.3" mass="2"/>'),
    "ball": (Ball(name="a", radius=0.2, mass=2.0), '<geom type="sphere" size="0.2" mass="2"/>'),
    "cylinder": (
        Cylinder(name="a", radius=0.1, half_length=0.3, mass=2.0),
        '<geom type="cylinder" size="0.1 0.3" mass="2"/>',
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_uniform_solid_turns_as_mujoco_s(shape: str) -> None:
    thing, geom = SHAPES[shape]
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>")
    np.testing.assert_allclose(sorted(thing.solid_inertia()), sorted(model.body_inertia[1]), rtol=1e-9)


def test_a_wall_faces_the_way_it_is_told() -> None:
    rng = np.random.default_rng(0)
    point, normal = rng.normal(size=(2, 5, 3))
    poses = Wall.facing(point, normal)
    np.testing.assert_allclose(poses[:, :3], point)
    for pose, way in zip(poses, normal, strict=True):
        turn = from_quaternion(pose[3:])
        np.testing.assert_allclose(turn[:, 0], way / np.linalg.norm(way), atol=1e-12)
        assert np.linalg.det(turn) == pytest.approx(1.0)
    np.testing.assert_array_equal(Wall.facing(point[0], normal[0]), poses[0])


@pytest.mark.parametrize(
    ("thing", "what"),
    [
        (Box(name="a", size=(0.1, 0.0, 0.1)), "positive number in m"),
        (Ball(radius=np.nan), "positive number in m"),
        (Ball(radius=0.1, mass=-1.0), "zero or more"),
        (Ball(radius=0.1, friction=np.inf), "zero or more"),
        (Ball(radius=0.1, stiffness=0.0), "positive"),
        (Ball(radius=0.1, damping=3.0), "give both"),
        (Ball(radius=0.1, mass=1.0, inertia=(1.0, 0.1, 0.1)), "no body's"),
        (Ball(radius=0.1, quaternion=(1.0, 1.0, 0.0, 0.0)), "unit quaternion"),
        (Ball(radius=0.1, position=(np.nan, 0.0, 0.0)), "finite position"),
        (Floor(mass=1.0), "cannot move"),
        (Wall(mass=1.0), "use a Box"),
        (Board(name="robot"), "name of its own"),
        (Board(mount="hnd"), "on board"),
    ],
)
def test_what_cannot_be_is_refused(thing: Object, what: str, slider: Robot) -> None:
    with pytest.raises(RetorqueError, match=what):
        Scene(objects=[thing]).check(slider)


def falling(slider: Robot, **changes: object) -> Target:
    ball = replace(Ball(radius=0.05, mass=0.3, position=(1.0, 0.0, 1.0)), **changes)
    return Target(slider, Parameters.ideal(slider), scene=Scene(objects=[Floor(), ball]), threads=1)


def test_a_ball_falls_as_galileo_says_and_comes_to_rest_on_its_radius(slider: Robot) -> None:
    target = falling(slider)
    still = Command(torque=np.zeros(1))
    for _ in range(300):
        target.write(still)
    assert target.objects is not None
    assert target.objects[0, 2] == pytest.approx(1.0 - 0.5 * 9.81 * 0.3**2, abs=0.01)
    assert target.objects[0, 9] == pytest.approx(-9.81 * 0.3, rel=0.01)
    for _ in range(2500):
        target.write(still)
    assert target.objects[0, 2] == pytest.approx(0.05, abs=2e-3)
    assert target.contact_force("ball", "floor")[2] == pytest.approx(0.3 * 9.81, rel=0.02)
    np.testing.assert_allclose(target.contact_force("floor", "ball"), -target.contact_force("ball", "floor"), atol=1e-9)


def test_reset_puts_things_back_and_lets_pushes_go(slider: Robot) -> None:
    target = falling(slider)
    first = target.reset(slider.home)
    target.push(5.0)
    for _ in range(50):
        target.write(Command(torque=np.zeros(1)))
    again = target.reset(slider.home)
    np.testing.assert_array_equal(first.objects, again.objects)
    target.write(Command(torque=np.zeros(1)))
    np.testing.assert_array_equal(target.velocity, 0.0)


def test_a_picture_shows_what_is_there(slider: Robot) -> None:
    view = View(at=(1.0, 0.0, 1.0), distance=1.0, azimuth=90.0, elevation=0.0, width=64, height=48)
    target = falling(slider)
    try:
        camera = Camera(target, view)
    except RetorqueError as error:
        assert "EGL" in str(error)
        pytest.skip("no EGL on this machine")
    with camera:
        seen = camera.picture()
        np.testing.assert_array_equal(seen, camera.picture())
        assert seen.shape == (48, 64, 3) and seen.dtype == np.uint8
        red, _, blue = seen[24, 32].astype(int)  # the ball in the middle is orange
        assert red > blue + 40
        assert np.any(np.all(seen == SKY, axis=-1))
        target.place("ball", np.array([1.0, 0.0, 1.15, 1.0, 0.0, 0.0, 0.0]))
        higher = camera.picture().astype(int)
    orange = [np.argwhere(x[..., 0] > x[..., 2] + 40)[:, 0].mean() for x in (seen.astype(int), higher)]
    assert orange[1] < orange[0] - 3  # up in the world is up in the picture


SERVOS = Robot.load("toddlerbot_2xm")


def motors(seed: int = 0, trials: int = 2) -> MotorTarget:
    truth = MotorTruth.sample(SERVOS, trials, seed)
    return MotorTarget(SERVOS, truth, np.full(SERVOS.n, 12.0), np.full(SERVOS.n, 0.5), seed=seed)


def test_motors_are_those_of_their_seed() -> None:
    told = Command(position=np.broadcast_to(SERVOS.home + 0.05, (2, SERVOS.n)))
    reports = []
    for seed in (1000, 1000, 1001):
        target = motors(seed)
        for _ in range(3):
            target.write(told)
        state = target.read()
        assert state.motor is not None and state.motor.pwm is not None
        reports.append(np.concatenate([state.position.ravel(), np.nan_to_num(state.motor.pwm).ravel()]))
    np.testing.assert_array_equal(reports[0], reports[1])
    assert not np.array_equal(reports[0], reports[2])


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_hidden_friction_stays_near_the_cards(spread: float) -> None:
    card, drawn = MotorTruth.of_card(SERVOS), MotorTruth.sample(SERVOS, 20, 0, spread=spread)
    for name in ("coulomb", "viscous"):
        own, found = getattr(card, name), getattr(drawn, name)
        assert np.all(found >= own * (1.0 - spread) - 1e-12) and np.all(found <= own * (1.0 + spread) + 1e-12)
    assert np.all((drawn.efficiency > 0.0) & (drawn.efficiency <= 1.0))


def test_a_winding_turns_as_much_power_as_it_is_given_at_most() -> None:
    """Torque falls with speed by back-EMF, the slope that is reported is that fall, and PWM ends at one."""
    joints = motors().joints
    servo = MotorServo(joints, np.full(SERVOS.n, 12.0), np.full(SERVOS.n, 0.5))
    zeros, limit = np.zeros(SERVOS.n), np.full(SERVOS.n, 1e6)
    step = 1e-6
    torque, slope = servo.torque(zeros + 0.01, 0.0, zeros, zeros, limit)
    faster, _ = servo.torque(zeros + 0.01, 0.0, zeros, zeros + step, limit)
    np.testing.assert_allclose(slope, (torque - faster) / step, rtol=1e-4, atol=1e-6)
    servo.torque(zeros + 1e3, 0.0, zeros, zeros, limit)
    np.testing.assert_array_equal(servo.pwm, 1.0)


def test_position_loops_without_numbers_are_refused() -> None:
    with pytest.raises(RetorqueError, match="must be finite"):
        MotorTarget(SERVOS, MotorTruth.of_card(SERVOS), np.full(SERVOS.n, np.nan), np.zeros(SERVOS.n))
