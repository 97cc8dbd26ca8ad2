"""mink behind the same interface: it agrees with the compiled solver, keeps limits, and never raises in the loop."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.kinematics_choice import has_mink, kinematics_class
from retorque.control.comply.mink_kinematics import MinkKinematics
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.sense.wrench_estimator import own_joints
from retorque.tasks.embodiments import embodiment
from retorque.work.errors import RetorqueError

needs_mink = pytest.mark.skipif(not has_mink(), reason="pip install 'retorque[mink]'")


@needs_mink
@pytest.mark.parametrize("name", ("arx_x5", "leap_hand", "toddlerbot_2xm"))
def test_both_solvers_take_the_same_way(name: str) -> None:
    body = embodiment(name)
    robot = body.load()
    frames = tuple(robot.frame(site) for site in body.sites)
    tree = CompiledTree(robot, frames)
    used = own_joints(tree)
    own = used.any(axis=0)
    q = body.position(robot)[None]
    base = np.array([[0.1, 0.2, 0.3, np.cos(0.1), 0.0, 0.0, np.sin(0.1)]]) if robot.floating else None
    there = q.copy()
    there[:, own] += 0.2 * np.random.default_rng(0).uniform(-1.0, 1.0, int(own.sum()))
    tree.update(np.clip(there, robot.lower + 0.05, robot.upper - 0.05), base)
    goal, turn = tree.position.copy(), tree.rotation.copy()
    ours, theirs = (kind(robot, frames, used) for kind in (DampedLeastSquares, MinkKinematics))
    for solver in (ours, theirs):
        solver.reset(q)
        for _ in range(40):
            solver.step(goal, turn, base)
    np.testing.assert_allclose(theirs.q[:, ~own], q[:, ~own], atol=1e-6)
    where = []
    for solver in (ours, theirs):
        tree.update(solver.q, base)
        where.append(tree.position.copy())
    np.testing.assert_allclose(where[1], where[0], atol=1e-4)
    np.testing.assert_allclose(where[1], goal, atol=2e-3)


@needs_mink
def test_limits_hold_and_what_cannot_be_reached_is_said() -> None:
    body = embodiment("arx_x5")
    robot = body.load()
    frames = (robot.end_effector,)
    tree = CompiledTree(robot, frames)
    made = MinkKinematics(robot, frames, own_joints(tree))
    made.reset(body.position(robot)[None])
    tree.update(made.q)
    before = made.q.copy()
    for _ in range(60):
        now = made.step(tree.position + 5.0, tree.rotation)
        assert np.abs(now - before).max() <= 4.0 * 0.02 + 1e-6
        before = now.copy()
    assert np.all(now >= robot.lower) and np.all(now <= robot.upper)
    assert made.codes[0] & ComplyCode.REACH
    made.step(np.full((1, 1, 3), np.nan), tree.rotation)
    assert np.isfinite(made.q).all()


@needs_mink
def test_self_collision_is_not_its_work() -> None:
    robot = embodiment("arx_x5").load()
    with pytest.raises(RetorqueError, match="without self-collision"):
        MinkKinematics(
            robot, (robot.end_effector,), np.ones((1, 6)), settings=KinematicsSettings(collision_margin=0.01)
        )


def test_solvers_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kinematics_class("compiled") is DampedLeastSquares
    with pytest.raises(RetorqueError, match="minks"):
        kinematics_class("minks")
    monkeypatch.setattr("retorque.control.comply.kinematics_choice.find_spec", lambda name: None)
    with pytest.raises(RetorqueError, match=r"retorque\[mink\]"):
        kinematics_class("mink")
