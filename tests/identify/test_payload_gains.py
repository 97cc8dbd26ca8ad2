"""Drive gains between two logs: saved, refused where they do not fit, guessed from a card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.identify.payload_gains import SavedGains, Scaled, rough_gains
from retorque.identify.verdict.payload_verdict import RATED, capacity
from retorque.logs.motion import Motion
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")
N = ARM.n
GAINS = SavedGains(gains=np.linspace(5.0, 15.0, N), covariance=0.01 * np.eye(N) + 0.002)


def motion(gains: np.ndarray | float = 1.0) -> Motion:
    """The card's own arm, its torques as currents."""
    rng = np.random.default_rng(0)
    w = rng.uniform(0.8, 5.0, (N, 3))
    angle = w * (0.02 * np.arange(800)[:, None, None]) + rng.uniform(0.0, 6.0, w.shape)
    size = rng.uniform(0.3, 0.6, w.shape) / np.sqrt(w)
    q = ARM.home + np.sum(size * np.sin(angle), axis=-1)
    qd, qdd = np.sum(size * w * np.cos(angle), axis=-1), -np.sum(size * w**2 * np.sin(angle), axis=-1)
    return Motion.of(q, qd, qdd, RigidBody(ARM).inverse_dynamics(q, qd, qdd) / gains, 0.02)


def test_gains_outlive_their_file(tmp_path: Path) -> None:
    read = SavedGains.load(GAINS.save(tmp_path / "gains.json", ARM), ARM)
    np.testing.assert_array_equal(read.gains, GAINS.gains)
    np.testing.assert_array_equal(read.covariance, GAINS.covariance)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("joints", ["a"] * N, "not of 'z1'"),
        ("drive_gains", [1.0] * (N - 1), "needs 6 gains"),
        ("drive_gains", [0.0] * N, "needs 6 gains"),
        ("relative_covariance", (-np.eye(N)).tolist(), "needs 6 gains"),
        ("relative_covariance", np.zeros((2, 2)).tolist(), "needs 6 gains"),
        ("drive_gains", "many", "cannot read"),
    ],
)
def test_gains_that_do_not_fit_are_refused(tmp_path: Path, key: str, value: object, words: str) -> None:
    path = GAINS.save(tmp_path / "gains.json", ARM)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(RetorqueError, match=words):
        SavedGains.load(path, ARM)


def test_no_file_and_no_json_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "gains.json").write_text("{")
    for path in (tmp_path / "gains.json", tmp_path / "none.json"):
        with pytest.raises(RetorqueError, match="save them again"):
            SavedGains.load(path, ARM)


def test_a_scaled_source_is_the_same_motion_with_other_torques() -> None:
    own = motion()
    pieces = list(Scaled(own, GAINS.gains).chunks())
    np.testing.assert_allclose(np.concatenate([piece.torque for piece in pieces]), own.torque * GAINS.gains)
    np.testing.assert_array_equal(np.concatenate([piece.q for piece in pieces]), own.q)


def test_a_card_gives_a_rough_idea_of_the_gains() -> None:
    found = rough_gains(motion(GAINS.gains), ARM)
    heavy = np.array([False, True, True, True, False, False])  # the joints that carry the arm
    np.testing.assert_allclose(found[heavy], GAINS.gains[heavy], rtol=0.1)
    assert np.all(found > 0.0)


def test_a_log_without_torque_gives_none() -> None:
    own = motion()
    with pytest.raises(RetorqueError, match="give --drive-gains"):
        rough_gains(replace(own, torque=1e-3 * np.random.default_rng(1).standard_normal(own.q.shape)), ARM)


def test_an_arm_holds_less_with_weaker_joints() -> None:
    most = capacity(ARM)
    assert 0.5 < RATED * most < 10.0 and capacity(ARM) == most

    def limited(part: float) -> Robot:
        links = [
            link if link.joint is None else replace(link, joint=replace(link.joint, torque_limit=part * limit))
            for link, limit in zip(ARM.links, _limits(), strict=True)
        ]
        return ARM.with_links(tuple(links))

    assert capacity(limited(0.7)) < most < capacity(limited(2.0))
    assert capacity(limited(np.inf)) == np.inf


def _limits() -> list[float]:
    """The torque limit of each link's joint [N·m]; 1 where there is none."""
    own = iter(ARM.torque_limit.tolist())
    return [1.0 if link.joint is None else next(own) for link in ARM.links]
