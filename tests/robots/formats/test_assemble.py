"""Robots put together from bodies: what is welded weighs as before, home and hand are found, odd files are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.physics.rigid_body import RigidBody
from retorque.robots.formats.assemble import Marker, assemble
from retorque.robots.formats.repair import nearest_inertia, repaired
from retorque.robots.formats.tree import Body, Hinge
from retorque.robots.robot import Joint, Robot
from retorque.work.errors import RetorqueError

EYE = np.eye(3)


def body(name: str, parent: int, *hinges: Hinge, **changes: object) -> Body:
    rng = np.random.default_rng(parent + 2)
    parts: dict = {
        "position": np.array([0.1, 0.02, 0.3]),
        "rotation": Rotation.random(rng=rng).as_matrix(),
        "mass": 1.0 + parent + 1,
        "centre": np.array([0.01, 0.03, 0.1]),
        "inertia": np.diag([0.02, 0.03, 0.015]),
        **changes,
    }
    return Body(name=name, parent=parent, hinges=hinges, **parts)


def hinge(name: str, *, lower: float = -2.0, upper: float = 2.0, reference: float = 0.0) -> Hinge:
    axis = (0.0, 0.6, 0.8)
    return Hinge(joint=Joint(name=name, axis=axis, lower=lower, upper=upper), anchor=np.zeros(3), reference=reference)


CHAIN = [
    body("base", -1),
    body("upper", 0, hinge("shoulder")),
    body("lower", 1, hinge("elbow", reference=0.4)),
    body("hand", 2, hinge("wrist")),
]


def made(bodies: list[Body] = CHAIN, keep: tuple[str, ...] | None = None, **more: object) -> Robot:
    parts: dict = {"markers": (), "source": "a.file", **more}
    return assemble(name="made", bodies=bodies, keep=keep, **parts)


def test_a_welded_joint_changes_nothing_that_the_others_feel() -> None:
    """At the welded joint's reference position, the whole robot and the cut one need the same torques."""
    whole, cut = made(), made(keep=("shoulder", "wrist"))
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(0.0, 1.0, (3, 20, 2))

    def full(values: np.ndarray, at: float) -> np.ndarray:
        return np.stack([values[:, 0], np.full(20, at), values[:, 1]], axis=1)

    torque = RigidBody(whole).inverse_dynamics(full(q, 0.4), full(qd, 0.0), full(qdd, 0.0))
    np.testing.assert_allclose(RigidBody(cut).inverse_dynamics(q, qd, qdd), torque[:, [0, 2]], atol=1e-10)
    assert cut.joint_names == ("shoulder", "wrist") and "elbow" in cut.notes


def test_nothing_weighs_less_for_being_fused() -> None:
    for keep in (None, ("shoulder",), ("wrist",)):
        assert sum(x.mass for x in made(keep=keep).links) == pytest.approx(sum(x.mass for x in CHAIN))


def test_the_first_pose_within_the_limits_is_home() -> None:
    outside, partial = {"shoulder": 5.0, "elbow": 0.0, "wrist": 0.0}, {"shoulder": 0.1}
    good, later = ({"shoulder": a, "elbow": 0.2, "wrist": -0.3} for a in (0.1, 0.5))
    np.testing.assert_array_equal(made(poses=[outside, partial, good, later]).home, [0.1, 0.2, -0.3])
    nowhere = made(poses=[outside])
    assert np.all((nowhere.home > nowhere.lower) & (nowhere.home < nowhere.upper))


@pytest.mark.parametrize(("lower", "upper"), [(-3.0, -1.0), (0.5, 0.6), (-np.inf, np.inf), (1.0, np.inf)])
def test_a_home_that_nobody_gave_is_inside_any_limits(lower: float, upper: float) -> None:
    bodies = [CHAIN[0], replace(CHAIN[1], hinges=[hinge("shoulder", lower=lower, upper=upper)])]
    (home,) = made(bodies).home
    assert lower < home < upper and np.isfinite(home)


def test_a_marker_is_where_it_was_whatever_is_welded() -> None:
    marker = Marker("tip", 3, np.array([0.0, 0.1, 0.2]), Rotation.from_euler("x", 0.7).as_matrix())
    whole, cut = made(markers=[marker]), made(keep=("shoulder",), markers=[marker])
    there = RigidBody(whole).frame_pose(whole.frame("tip"), np.array([0.5, 0.4, 0.0]))
    here = RigidBody(cut).frame_pose(cut.frame("tip"), np.array([0.5]))
    for ours, theirs in zip(here, there, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_markers_of_a_meaning_are_taken_at_their_word() -> None:
    marks = [Marker(name, k, np.zeros(3), EYE) for k, name in ((3, "end_effector"), (2, "payload_mount"), (1, "eye"))]
    robot = made(markers=marks)
    assert robot.end_effector.link == "hand" and robot.payload_mount.link == "lower"
    assert tuple(robot.frames) == ("eye",)
    assert made().payload_mount == made().end_effector


@pytest.mark.parametrize(
    ("bodies", "keep", "what"),
    [
        (CHAIN, (), "no joint that moves"),
        (CHAIN, ("elbw",), "did you mean 'elbow'"),
        ([CHAIN[0], replace(CHAIN[1], mass=-1.0)], None, "positive mass"),
        ([CHAIN[0], replace(CHAIN[1], mass=np.nan)], None, "positive mass"),
        ([CHAIN[0], CHAIN[1], replace(CHAIN[2], hinges=[hinge("shoulder")])], None, "more than once"),
        ([CHAIN[0], replace(CHAIN[1], inertia=np.diag([1.0, 0.1, 0.1]))], None, "inertia"),
    ],
)
def test_what_is_no_robot_is_refused_with_its_file(bodies: list[Body], keep, what: str) -> None:
    with pytest.raises(RetorqueError, match=what) as error:
        made(bodies, keep)
    assert str(error.value).startswith("a.file")


def test_two_bodies_of_one_name_are_told_apart() -> None:
    robot = made([CHAIN[0], CHAIN[1], replace(CHAIN[2], name="upper")])
    assert len({link.name for link in robot.links}) == len(robot.links)


@pytest.mark.parametrize("seed", range(5))
def test_an_impossible_inertia_becomes_the_nearest_that_could_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn = Rotation.random(rng=rng).as_matrix()
    wrong = turn @ np.diag([1.0, 0.2, 0.1]) @ turn.T
    found = nearest_inertia(2.0, wrong)
    principal = np.linalg.eigvalsh(found)
    assert principal[0] > 0.0 and principal[2] < principal[0] + principal[1]
    np.testing.assert_allclose(nearest_inertia(2.0, found), found, atol=1e-12)  # once is enough
    seen = turn.T @ found @ turn
    np.testing.assert_allclose(seen - np.diag(np.diag(seen)), 0.0, atol=1e-12)  # its axes stay


def test_only_what_must_be_repaired_is_and_the_note_says_so() -> None:
    bad = replace(CHAIN[2], inertia=np.diag([1.0, 0.1, 0.1]))
    found, said = repaired([*CHAIN[:2], bad, CHAIN[3]])
    assert [a is b for a, b in zip(found, [*CHAIN[:2], bad, CHAIN[3]], strict=True)] == [True, True, False, True]
    assert len(said) == 1 and "lower" in said[0] and "upper" not in said[0]
    assert repaired(CHAIN)[1] == []
    made(found)
