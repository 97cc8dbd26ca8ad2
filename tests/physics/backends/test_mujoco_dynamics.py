"""The dynamics of a MuJoCo model: any friction, any number of rows, any parameters, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cases import far, hidden, knots

from retorque.physics.backends.mujoco_dynamics import ROWS, MujocoDynamics
from retorque.physics.dynamics import make_dynamics
from retorque.physics.friction import PRESETS
from retorque.physics.selection import Selection
from retorque.robots.formats.mjcf_writer import to_mjmodel
from retorque.robots.robot import Robot

H = 0.002


@pytest.mark.parametrize("friction", sorted(PRESETS))
def test_it_agrees_with_the_tree_under_every_friction(tangled: Robot, friction: str) -> None:
    base = hidden(tangled, PRESETS[friction])
    tree, mujoco = (make_dynamics(tangled, H, backend=b, parameters=base) for b in ("tree", "mujoco"))
    x, u = knots(tree, 12)
    x[6:, 3:] *= 0.01
    assert far(mujoco.step(x, u), tree.step(x, u)) < 1e-9


def test_more_rows_than_simulations_are_served_in_turns(tangled: Robot) -> None:
    d = MujocoDynamics(tangled, H, parameters=hidden(tangled))
    x, u = knots(d, 5)
    times = ROWS // 5 + 3
    many = d.step(np.tile(x, (times, 1)), np.tile(u, (times, 1)))
    np.testing.assert_allclose(many, np.tile(d.step(x, u), (times, 1)), atol=1e-12)


def test_asking_about_another_robot_leaves_the_first_as_it_was(tangled: Robot) -> None:
    base = hidden(tangled)
    selection = Selection(tangled, ["mass", "centre", "inertia", "armature", "damping"], base)
    d = MujocoDynamics(tangled, H, selection=selection)
    x, u = knots(d, 3)
    before = d.step(x, u)
    other = d.step(x, u, selection.to_vector(base) + 0.1)
    assert far(other, before) > 1e-4
    np.testing.assert_allclose(d.step(x, u), before, atol=1e-13)


def test_a_model_of_ones_own_is_taken_with_the_time_step_asked_for(tangled: Robot) -> None:
    base = hidden(tangled)
    model = to_mjmodel(tangled, timestep=0.05, contact=False)
    own, usual = MujocoDynamics(tangled, H, parameters=base, model=model), MujocoDynamics(tangled, H, parameters=base)
    x, u = knots(own, 3)
    np.testing.assert_array_equal(own.step(x, u), usual.step(x, u))


def test_a_free_base_moves_as_the_trees(tangled: Robot) -> None:
    robot = Robot.load("toddlerbot")
    base = hidden(robot)
    tree, mujoco = (make_dynamics(robot, H, backend=b, parameters=base) for b in ("tree", "mujoco"))
    x, u = knots(tree, 3)
    x[:, tree.nq :] *= 3.0  # fast turns, where the base's own axes and the world's differ most
    assert far(mujoco.step(x, u), tree.step(x, u)) < 1e-9
