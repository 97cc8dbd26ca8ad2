"""Rotations: each form back and forth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.robots import rotation


def matrices() -> list[np.ndarray]:
    turns = [np.eye(3), np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])]
    return turns + list(Rotation.random(50, rng=np.random.default_rng(0)).as_matrix())


@pytest.mark.parametrize("matrix", matrices())
def test_quaternion_back_and_forth(matrix: np.ndarray) -> None:
    quaternion = rotation.to_quaternion(matrix)
    assert quaternion[0] >= 0.0
    assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-15)
    assert np.allclose(rotation.from_quaternion(quaternion), matrix, atol=1e-14)
    assert np.allclose(Rotation.from_matrix(matrix).as_quat(scalar_first=True, canonical=True), quaternion, atol=1e-14)


@pytest.mark.parametrize("matrix", matrices())
def test_roll_pitch_yaw_back_and_forth(matrix: np.ndarray) -> None:
    angles = rotation.to_roll_pitch_yaw(matrix)
    assert np.allclose(rotation.from_roll_pitch_yaw(angles), matrix, atol=1e-12)
    assert np.allclose(Rotation.from_euler("xyz", angles).as_matrix(), matrix, atol=1e-12)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_roll_pitch_yaw_straight_up(pitch: float) -> None:
    matrix = Rotation.from_euler("xyz", (0.3, pitch, -0.7)).as_matrix()
    assert np.allclose(rotation.from_roll_pitch_yaw(rotation.to_roll_pitch_yaw(matrix)), matrix, atol=1e-9)
