"""The ball's place from rendered pictures of a camera on the hand, and from pictures that show nothing of use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.cameras.mounted_camera import Checkerboard, MountedCamera, Mounting
from retorque.tasks.ball.ball_camera import BallCamera
from retorque.tasks.ball.ball_filter import BallFilter
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.plate import BALL_RADIUS, PLATE
from retorque.tasks.ball.plate_calibration import FRAMES, TILES, PlateCalibration, calibrate
from retorque.tasks.policy_task import Robots
from retorque.work.errors import RetorqueError

MOUNTING = Mounting(frame="plate", eye=(-0.16, 0.02, 0.30))
BOARD = Checkerboard(frame="plate", tiles=TILES, side=2.0 * PLATE[0])


class Plate:
    """A robot with a plate, and a camera that looks at it."""

    def __init__(self) -> None:
        self.task = BallTask(Robot.load("panda"), 1, 1000)
        self.target = self.task.target(Robots.ideal(self.task.robot, 1))
        self._body = RigidBody(self.task.robot)
        self.camera = MountedCamera(self.target, MOUNTING, BOARD)

    def picture(self, x: float, y: float, height: float = BALL_RADIUS) -> np.ndarray:
        at, turn = self._body.frame_pose(self.task.robot.frame("plate"), np.array(self.target.position[0]))
        self.target.place("ball", np.concatenate([at + turn @ [x, y, height], [1.0, 0.0, 0.0, 0.0]]))
        return self.camera.picture()


@pytest.fixture(scope="module")
def plate() -> Iterator[Plate]:
    try:
        made = Plate()
    except RetorqueError as error:
        pytest.skip(str(error))
    with made.camera:
        yield made


@pytest.fixture(scope="module")
def calibration(plate: Plate) -> PlateCalibration:
    empty = plate.picture(5.0, 5.0)
    rng = np.random.default_rng(0)
    frames = [np.clip(empty + rng.normal(0.0, 4.0, empty.shape), 0, 255).astype(np.uint8) for _ in range(FRAMES)]
    return calibrate(frames, MOUNTING.intrinsics)


def test_the_camera_finds_out_where_it_stands(calibration: PlateCalibration) -> None:
    np.testing.assert_allclose(calibration.rotation, MOUNTING.rotation, atol=3e-3)
    eye = -calibration.rotation.T @ calibration.translation
    np.testing.assert_allclose(eye, MOUNTING.eye, atol=1.5e-3)
    assert calibration.error < 0.2


def test_the_balls_place_is_right_within_a_millimetre(plate: Plate, calibration: PlateCalibration) -> None:
    eye = BallCamera(calibration)
    plate.target.position[0, 4:] += [0.05, -0.08, 0.03]  # the camera moves with the hand
    rng = np.random.default_rng(1)
    for _ in range(12):
        place = rng.uniform(-0.065, 0.065, 2)
        found = eye.place(plate.picture(*place))
        assert np.linalg.norm(found - place) < 1e-3


def test_a_ball_that_is_hidden_gone_or_too_small_is_nowhere(plate: Plate, calibration: PlateCalibration) -> None:
    eye = BallCamera(calibration)
    seen = plate.picture(0.02, 0.01)
    hidden = seen.copy()
    hidden[:, :] = 90
    assert np.isnan(eye.place(hidden)).all()
    assert np.isnan(eye.place(plate.picture(5.0, 5.0))).all()
    assert np.isnan(eye.place(np.zeros((3, 3), dtype=np.uint8))).all()
    speck = hidden.copy()
    speck[100:104, 100:104] = (230, 40, 20)
    assert np.isnan(eye.place(speck)).all()
    below = hidden.copy()
    below[200:230, 5:60] = (230, 40, 20)  # red, but not on the plate
    assert np.isnan(eye.place(below)).all()
    kept = BallFilter(0.02)
    first, _ = kept.see(eye.place(seen))
    again, _ = kept.see(eye.place(hidden))
    np.testing.assert_array_equal(first, again)


def test_pictures_without_a_checkerboard_are_refused(plate: Plate) -> None:
    grey = np.full((240, 320, 3), 128, dtype=np.uint8)
    with pytest.raises(RetorqueError, match="checkerboard"):
        calibrate([grey] * FRAMES, MOUNTING.intrinsics)
    with pytest.raises(RetorqueError, match="checkerboard"):
        calibrate([plate.picture(0.0, 0.0)] * FRAMES, MOUNTING.intrinsics)  # the ball hides its middle
    with pytest.raises(RetorqueError, match="one size"):
        calibrate([], MOUNTING.intrinsics)
    with pytest.raises(RetorqueError, match="one size"):
        calibrate([grey, grey[:100]], MOUNTING.intrinsics)


def test_rays_that_never_meet_the_plate_meet_nothing() -> None:
    above = PlateCalibration(np.eye(3), np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 0.5]), 0.0)
    rays = np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    met = above.on_plane(rays, 0.1)
    np.testing.assert_allclose(met[:2], [[0.0, 0.0], [0.04, 0.0]], atol=1e-12)
    assert np.isnan(met[3]).all() and not np.isfinite(met[2]).all()
