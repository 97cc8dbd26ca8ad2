"""The ray-cast camera: things are where the lens puts them, in their colours, trial by trial."""

from __future__ import annotations

import numpy as np

from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.simulate.cameras.mounted_camera import Mounting
from retorque.simulate.cameras.ray_camera import AMBIENT, FACES, LIGHT, RayCamera
from retorque.simulate.scene import Box, Floor, Scene
from retorque.simulate.target import Target

ABOVE = Mounting(frame="end_effector", eye=(0.0, 0.0, 1.0), at=(0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0), width=32, height=24)


def _camera(slider: Robot, trials: int) -> tuple[Target, RayCamera]:
    box = Box(name="box", size=(0.04, 0.04, 0.04), mass=1.0, position=(0.0, 0.25, 0.04))
    target = Target(slider, Parameters.ideal(slider, trials), scene=Scene(objects=(Floor(), box)), threads=1)
    return target, RayCamera(target, ABOVE)


def _red(picture: np.ndarray) -> np.ndarray:
    """Middle (x, y) of what is red in a picture [pixels]."""
    r, g, b = np.moveaxis(picture.astype(float), -1, 0)
    rows, columns = np.nonzero((r > 1.5 * g) & (r > 1.5 * b))
    assert len(rows) > 4
    return np.array([columns.mean() + 0.5, rows.mean() + 0.5])


def test_a_side_of_a_box_is_where_the_lens_puts_it_and_as_bright_as_the_light_makes_it(slider: Robot) -> None:
    target, camera = _camera(slider, 2)
    upright = np.sqrt(0.5)
    for y in (0.25, -0.2):  # its +x side, which is red, looks up
        target.place(
            "box", np.array([[0.1, y, 0.04, upright, 0.0, -upright, 0.0], [2.0, 0.0, 0.04, 1.0, 0.0, 0.0, 0.0]])
        )
        seen = camera.pictures()
        assert seen.shape == (2, 24, 32, 3) and seen.dtype == np.uint8
        point = ABOVE.rotation @ (np.array([0.1, y, 0.08]) - [0.0, 0.0, 1.0])
        pixel = ABOVE.intrinsics @ (point / point[2])
        np.testing.assert_allclose(_red(seen[0]), pixel[:2], atol=0.5)
        middle = np.floor(pixel[:2]).astype(int)
        lit = AMBIENT + (1.0 - AMBIENT) * LIGHT[2]
        np.testing.assert_allclose(seen[0, middle[1], middle[0]], 255.0 * lit * FACES[0], atol=1.0)
    floor = seen[1]  # nothing stands in the other trial's picture
    grey = np.ptp(floor.astype(int), axis=-1)
    assert np.median(grey) == 0


def test_the_camera_goes_with_its_robot_and_leaves_the_simulation_alone(slider: Robot) -> None:
    target, camera = _camera(slider, 1)
    upright = np.sqrt(0.5)
    target.place("box", np.array([0.1, 0.25, 0.04, upright, 0.0, -upright, 0.0]))
    before, first = target.objects, _red(camera.pictures()[0])
    np.testing.assert_array_equal(target.objects, before)
    target.position[...] = 0.05
    second = _red(camera.pictures()[0])
    assert second[0] < first[0] - 1.0 and abs(second[1] - first[1]) < 0.5
