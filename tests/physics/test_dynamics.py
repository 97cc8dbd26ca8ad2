"""Backends of the dynamics against each other, against finite differences and against the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cases import far, hidden, knots

from retorque.physics.dynamics import make_dynamics
from retorque.physics.friction import PRESETS
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.robots.command import Command
from retorque.robots.library import names
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError


@pytest.mark.parametrize("name", names())
def test_the_tree_agrees_with_pinocchio_on_every_card(name: str) -> None:
    robot = Robot.load(name)
    base = hidden(robot)
    kinds = ["damping", "stiffness", "mass", "centre", "coulomb", "armature"]
    selection = Selection(robot, kinds if robot.floating else [*kinds, "inertia", "payload_mass"], base)
    tree, reference = (
        make_dynamics(robot, 0.002, backend=backend, selection=selection) for backend in ("tree", "pinocchio")
    )
    x, u = knots(tree, 3)
    p = selection.to_vector(base) + 0.01
    assert far(tree.step(x, u, p), reference.step(x, u, p)) < 1e-10
    for ours, theirs in zip(tree.linearise(x, u, p), reference.linearise(x, u, p), strict=True):
        assert far(ours, theirs) < 1e-10


@pytest.mark.parametrize("friction", ["full", "presliding", "asymmetric"])
def test_friction_terms_and_a_tangled_tree_agree_with_pinocchio(tangled: Robot, friction: str) -> None:
    base = hidden(tangled, PRESETS[friction])
    kinds = ["friction", "friction_width", "friction_shift", "damping", "torque_bias", "rest_position", "inertial"]
    selection = Selection(tangled, kinds, base)
    tree, reference = (make_dynamics(tangled, 0.01, backend=b, selection=selection) for b in ("tree", "pinocchio"))
    x, u = knots(tree, 40)
    x[20:, 3:] *= 0.01  # within the Coulomb limit as well
    p = selection.to_vector(base)
    assert tree.inputs == 2
    for ours, theirs in zip(tree.linearise(x, u, p), reference.linearise(x, u, p), strict=True):
        assert far(ours, theirs) < 1e-10


@pytest.mark.parametrize("name", ["tangled", "leap_hand", "toddlerbot"])
def test_derivatives_are_those_of_finite_differences(name: str, tangled: Robot) -> None:
    robot = tangled if name == "tangled" else Robot.load(name)
    base = hidden(robot)
    kinds = ["mass", "centre", "inertia", "damping", "stiffness", "friction_slope", "friction_shift", "armature"]
    selection = Selection(robot, kinds if name == "tangled" else kinds[:4], base)
    d = make_dynamics(robot, 0.005, backend="tree", selection=selection)
    x, u = knots(d, 2)
    p = selection.to_vector(base)
    a, b, c = d.linearise(x, u, p)
    e = 1e-6
    for k in range(2):
        both = [d.step(d.add(x[k], s * e * np.eye(2 * d.nv)), u[k], p) for s in (1.0, -1.0)]
        by_x = d.difference(both[1], both[0]).T / (2.0 * e)
        np.testing.assert_allclose(a[k], by_x, atol=1e-6 * np.max(np.abs(by_x)))
        both = [d.step(x[k], u[k] + s * e * np.eye(d.inputs), p) for s in (1.0, -1.0)]
        np.testing.assert_allclose(b[k], d.difference(both[1], both[0]).T / (2.0 * e), atol=1e-6 * np.max(np.abs(b)))
        for column in range(0, d.size, 1 if name == "tangled" else 17):
            both = [d.step(x[k], u[k], p + s * e * np.eye(d.size)[column]) for s in (1.0, -1.0)]
            want = d.difference(both[1], both[0]) / (2.0 * e)
            np.testing.assert_allclose(c[k, :, column], want, atol=1e-6 * max(1e-3, float(np.max(np.abs(c[k])))))


@pytest.mark.parametrize("name", ["tangled", "toddlerbot"])
def test_mujoco_agrees_where_nothing_touches(name: str, tangled: Robot) -> None:
    robot = tangled if name == "tangled" else Robot.load(name)
    base = hidden(robot)
    selection = Selection(robot, ["mass", "damping"], base)
    tree, mujoco = (make_dynamics(robot, 0.002, backend=b, selection=selection) for b in ("tree", "mujoco"))
    x, u = knots(tree, 2)
    p = selection.to_vector(base)
    assert far(tree.step(x, u, p), mujoco.step(x, u, p)) < 1e-10
    for ours, theirs in zip(tree.linearise(x, u, p), mujoco.linearise(x, u, p), strict=True):
        assert far(ours, theirs) < 1e-6


def test_a_step_is_the_simulators(tangled: Robot) -> None:
    base = hidden(tangled)
    d = make_dynamics(tangled, 0.01, backend="tree", parameters=base)
    target = Target(tangled, base, timestep=0.01)
    target.reset(np.array([0.1, 0.5, -0.3]), np.array([0.2, -1.0, 2.0]))
    x = np.concatenate([target.position, target.velocity])
    for k in range(50):
        torque = np.array([5.0 * np.sin(k), 0.0, 1.0])
        x = d.step(x, torque[d.actuated])
        target.write(Command(torque=torque))
    np.testing.assert_allclose(x, np.concatenate([target.position, target.velocity]), atol=1e-9)


def test_links_that_touch_are_felt_by_mujoco_alone() -> None:
    from retorque.physics.backends.mujoco_dynamics import MujocoDynamics

    robot = Robot.load("leap_hand")
    free = MujocoDynamics(robot, 0.002)
    touching = MujocoDynamics(robot, 0.002, contact=True)
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.lower, robot.upper, (40, robot.n))
    x, u = np.concatenate([q, np.zeros_like(q)], axis=1), np.zeros((40, robot.n))
    apart = np.max(np.abs(free.step(x, u) - touching.step(x, u)), axis=1)
    assert np.any(apart > 1e-3) and np.any(apart < 1e-12)


def test_what_cannot_be_used_is_refused(tangled: Robot) -> None:
    still = tangled.with_links(tuple(replace(x, joint=replace(x.joint, torque_limit=0.0)) for x in tangled.links))
    with pytest.raises(RetorqueError, match="has a motor"):
        make_dynamics(still, 0.01)
    with pytest.raises(RetorqueError, match="did you mean 'tree'"):
        make_dynamics(tangled, 0.01, backend="trees")
    with pytest.raises(RetorqueError, match="time step"):
        make_dynamics(tangled, float("nan"))
    with pytest.raises(RetorqueError, match="drive"):
        make_dynamics(tangled, 0.01, backend="tree", selection=Selection(tangled, ["torque_scale"]))
    with pytest.raises(RetorqueError, match="another robot"):
        make_dynamics(tangled, 0.01, selection=Selection(Robot.load("panda"), ["mass"]))
    with pytest.raises(RetorqueError, match="choose a trial"):
        make_dynamics(tangled, 0.01, parameters=Parameters.ideal(tangled, 2))
