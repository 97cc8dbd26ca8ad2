"""The core's rigid-body algebra against Pinocchio, for every fixed robot on board and a tree of odd joints."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from retorque.control.joint_impedance import JointImpedance
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import names
from retorque.robots.robot import Frame, Joint, Link, Robot
from retorque.runtime.compiled.build import load
from retorque.runtime.compiled.compiled_body import CompiledBody, compiled_impedance
from retorque.runtime.compiled.constants import robot_constants
from retorque.runtime.compiled.structures import filled

FIXED = [name for name in names() if not Robot.load(name).floating]


def odd_tree() -> Robot:
    """A fork with skew axes, a sliding joint on each branch, a turned fixed base and gravity from the side."""
    rng = np.random.default_rng(3)
    links = [Link(name="base", parent="world", joint=None, mass=0.0, quaternion=(0.8, 0.0, 0.6, 0.0))]
    parents = ("base", "a", "b", "b", "d", "e")
    for index, (name, parent) in enumerate(zip("abcdef", parents, strict=True)):
        axis = rng.normal(size=3)
        turn = rng.normal(size=4)
        joint = Joint(
            name=f"joint {name}",
            kind="prismatic" if name in "cf" else "revolute",
            axis=tuple(axis / np.linalg.norm(axis)) if index else (0.0, -1.0, 0.0),
            armature=0.05 * index,
        )
        links.append(
            Link(
                name=name,
                parent=parent,
                joint=joint,
                position=tuple(rng.normal(size=3)),
                quaternion=tuple(turn / np.linalg.norm(turn)),
                mass=1.0 + index,
                centre=tuple(0.2 * rng.normal(size=3)),
                inertia=(0.1, 0.2, 0.15, 0.01, -0.02, 0.03),
            )
        )
    return Robot(
        name="odd",
        links=tuple(links),
        home=np.zeros(6),
        end_effector=Frame(link="f"),
        payload_mount=Frame(link="f"),
        gravity=(1.0, -2.0, -9.0),
    )


@pytest.mark.parametrize("name", ["odd", *FIXED])
def test_the_algebra_is_pinocchios(core: Path, name: str) -> None:
    robot = odd_tree() if name == "odd" else Robot.load(name)
    calls, body, n = load(core), RigidBody(robot), robot.n
    constants, kept = filled("rt_robot", robot_constants(robot))
    at, rng = ctypes.c_void_p(ctypes.addressof(constants)), np.random.default_rng(0)

    def called(function: str, shape: tuple[int, ...], *arguments: np.ndarray) -> np.ndarray:
        out = np.full(shape, np.nan)
        getattr(calls, function)(at, *(ctypes.c_void_p(x.ctypes.data) for x in (*arguments, out)))
        return out

    for _ in range(5):
        q, qd, qdd = rng.normal(size=(3, n))
        torque = body.inverse_dynamics(q, qd, qdd)
        scale = 1e-12 * (1.0 + np.abs(torque).max())
        assert called("rt_inverse_dynamics", (n,), q, qd, qdd) == pytest.approx(torque, abs=scale)
        assert called("rt_forward_dynamics", (n,), q, qd, torque) == pytest.approx(qdd, abs=1e-9)
        assert np.allclose(called("rt_mass_matrix", (n, n), q), body.mass_matrix(q), atol=1e-12)
        regressor = called("rt_regressor", (n, 10 * n), q, qd, qdd)
        assert np.allclose(regressor, body.regressor(q, qd, qdd), atol=1e-11)
        assert regressor @ kept[5].ravel() + robot.armature * qdd == pytest.approx(torque, abs=10 * scale)


def test_the_bias_of_a_batch_is_pinocchios(core: Path) -> None:
    robot = Robot.load("panda")
    body, rng = CompiledBody(robot, core), np.random.default_rng(1)
    for shape in ((7,), (1, 7), (5, 7), (2, 3, 7)):
        q, qd = rng.normal(size=(2, *shape))
        assert np.allclose(body.bias(q, qd), RigidBody(robot).bias(q, qd), rtol=1e-12, atol=1e-12)
        assert np.allclose(body.bias(q[..., ::-1][..., ::-1], qd.astype(np.float32)), body.bias(q, qd), atol=1e-4)
    assert body.bias(q, qd[0, 0]).shape == q.shape  # broadcast, as by Pinocchio


def test_a_controller_without_a_compiler_stays_as_it_is(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("RETORQUE_CACHE", str(tmp_path))
    robot = Robot.load("z1")
    controller = JointImpedance(robot, np.ones(6), np.ones(6))
    body = controller.body
    assert compiled_impedance(controller).body is body
