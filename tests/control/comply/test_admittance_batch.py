"""Admittance of many robots and sites at once: each alone, frames that do not matter, and a reset that forgets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.control.comply.admittance import Admittance, AdmittanceSettings
from retorque.control.comply.compliance_action import ComplianceAction, along, isotropic
from retorque.control.comply.comply_code import ComplyCode

TICKS = 40


def poses(trials: int, sites: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    position = rng.uniform(-0.5, 0.5, (trials, sites, 3))
    rotation = Rotation.random(trials * sites, rng=rng).as_matrix().reshape(trials, sites, 3, 3)
    return position, rotation


def run(made: Admittance, action: ComplianceAction, wrench: np.ndarray, ticks: int = TICKS) -> np.ndarray:
    """Positions, velocities and rotations after some ticks, in a row a trial."""
    for tick in range(ticks):
        made.step(action, wrench, tick * made.timestep)
    parts = (made.position, made.velocity, made.rotation)
    return np.concatenate([part.reshape(made.trials, -1) for part in parts], axis=1)


@pytest.fixture(scope="module")
def pushed() -> tuple[ComplianceAction, np.ndarray, np.ndarray, np.ndarray]:
    """Three robots with two sites each, pushed differently."""
    position, rotation = poses(3, 2)
    rng = np.random.default_rng(1)
    stiffness = along(rng.standard_normal((3, 2, 3)), 300.0, 60.0, 15.0)
    goal = ComplianceAction(
        position=position + 0.05,
        rotation=rotation,
        stiffness=stiffness,
        wrench=rng.normal(0.0, 1.0, (3, 2, 6)),
        velocity=rng.normal(0.0, 0.05, (3, 2, 6)),
    )
    return goal, rng.normal(0.0, 2.0, (3, 2, 6)), position, rotation


def test_one_command_for_all_is_the_same_as_one_each(pushed) -> None:
    """Commands of full size are copied by a kernel, smaller ones by NumPy: to the last bit the same."""
    goal, wrench, _, _ = pushed
    position, rotation = (np.repeat(x[:1], 3, axis=0) for x in poses(1, 2))
    shared = replace(
        goal, position=position[0] + 0.05, rotation=rotation[0], velocity=goal.velocity[0], wrench=goal.wrench[0]
    )
    own = replace(
        shared,
        position=np.repeat(shared.position[None], 3, axis=0),
        rotation=np.repeat(shared.rotation[None], 3, axis=0),
        velocity=np.repeat(shared.velocity[None], 3, axis=0),
        wrench=np.repeat(shared.wrench[None], 3, axis=0),
    )
    found = []
    for action in (shared, own, replace(own, velocity=None, wrench=None), replace(shared, velocity=None, wrench=None)):
        made = Admittance(2, 3)
        made.reset(position, rotation)
        found.append(run(made, action, wrench))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    assert not np.array_equal(found[0], found[2])


def test_a_batch_is_each_of_its_robots(pushed) -> None:
    goal, wrench, position, rotation = pushed
    together = Admittance(2, 3)
    together.reset(position, rotation)
    whole = run(together, goal, wrench)
    for k in range(3):
        alone = Admittance(2, 1)
        alone.reset(position[k : k + 1], rotation[k : k + 1])
        own = ComplianceAction(
            position=goal.position[k : k + 1],
            rotation=goal.rotation[k : k + 1],
            stiffness=goal.stiffness[k : k + 1],
            wrench=goal.wrench[k : k + 1],
            velocity=goal.velocity[k : k + 1],
        )
        np.testing.assert_allclose(run(alone, own, wrench[k : k + 1])[0], whole[k], atol=1e-12)


def test_reset_forgets_all_that_was(pushed) -> None:
    """Also where the first command after it cannot be used: no old wrench pushes on."""
    goal, wrench, position, rotation = pushed
    nothing = np.zeros((3, 2, 6))
    bad = ComplianceAction(position=position * np.nan, rotation=rotation, stiffness=isotropic(100.0, 10.0))
    used, fresh = Admittance(2, 3), Admittance(2, 3)
    used.reset(position, rotation)
    run(used, goal, wrench)
    for made in (used, fresh):
        made.reset(position, rotation)
    np.testing.assert_array_equal(run(used, bad, nothing, 5), run(fresh, bad, nothing, 5))
    assert np.all(used.codes & ComplyCode.BAD_COMMAND)
    np.testing.assert_array_equal(run(used, goal, wrench), run(fresh, goal, wrench))
    np.testing.assert_array_equal(used.tank, fresh.tank)


@pytest.mark.parametrize("part", ["position", "rotation", "velocity", "wrench"])
def test_one_robots_bad_command_leaves_the_others_theirs(pushed, part: str) -> None:
    goal, wrench, position, rotation = pushed
    broken = replace(goal, **{part: np.array(getattr(goal, part))})
    getattr(broken, part)[1, 0] = np.nan
    together, clean, held = Admittance(2, 3), Admittance(2, 3), Admittance(2, 3)
    for made in (together, clean, held):
        made.reset(position, rotation)
        run(made, goal, wrench, 5)
    ours, theirs = run(together, broken, wrench), run(clean, goal, wrench)
    np.testing.assert_array_equal(ours[[0, 2]], theirs[[0, 2]])
    np.testing.assert_array_equal(together.codes & ComplyCode.BAD_COMMAND > 0, [False, True, False])
    still = replace(goal, velocity=np.zeros((3, 2, 6)))  # the last good goal stands, and no longer moves
    np.testing.assert_allclose(ours[1], run(held, still, wrench)[1], atol=1e-12)


def test_the_world_may_be_turned() -> None:
    turn = Rotation.from_euler("xyz", [0.3, 0.9, -1.4]).as_matrix()
    both = np.kron(np.eye(2), turn)
    rng = np.random.default_rng(2)
    position, rotation = poses(1, 1, 3)
    stiffness = along(rng.standard_normal(3), 250.0, 50.0, 12.0)
    wrench, push = rng.normal(0.0, 1.0, (2, 1, 1, 6))
    here, there = Admittance(1), Admittance(1)
    here.reset(position, rotation)
    there.reset(position @ turn.T, turn @ rotation)
    goal = ComplianceAction(position=position + 0.02, rotation=rotation, stiffness=stiffness, wrench=push)
    seen = ComplianceAction(
        position=(position + 0.02) @ turn.T,
        rotation=turn @ rotation,
        stiffness=both @ stiffness @ both.T,
        wrench=push @ both.T,
    )
    run(here, goal, wrench)
    run(there, seen, wrench @ both.T)
    np.testing.assert_allclose(there.position, here.position @ turn.T, atol=1e-10)
    np.testing.assert_allclose(there.rotation, turn @ here.rotation, atol=1e-10)
    np.testing.assert_allclose(there.velocity, here.velocity @ both.T, atol=1e-10)


def test_rotations_stay_rotations_over_a_long_time() -> None:
    made = Admittance(1)
    position, rotation = poses(1, 1)
    made.reset(position, rotation)
    goal = ComplianceAction(position=position, rotation=rotation, stiffness=isotropic(50.0, 1.0))
    for tick in range(3000):
        moment = np.array([[[0.0, 0.0, 0.0, np.sin(0.01 * tick), 0.7, np.cos(0.03 * tick)]]])
        made.step(goal, moment, 0.02 * tick)
    np.testing.assert_allclose(made.rotation[0, 0] @ made.rotation[0, 0].T, np.eye(3), atol=1e-9)


def test_where_nothing_pulls_nothing_moves() -> None:
    position, rotation = poses(2, 2)
    made = Admittance(2, 2, settings=AdmittanceSettings(tank=0.0, tank_power=0.0))
    made.reset(position, rotation)
    goal = ComplianceAction(position=position, rotation=rotation, stiffness=isotropic(1e6, 1e4))
    run(made, goal, np.zeros((2, 2, 6)))
    np.testing.assert_allclose(made.position, position, atol=1e-12)
    np.testing.assert_allclose(made.rotation, rotation, atol=1e-12)


def test_a_heavier_mass_gives_way_more_slowly_to_the_same_place() -> None:
    position, rotation = np.zeros((1, 1, 3)), np.eye(3)[None, None]
    goal = ComplianceAction(position=position, rotation=rotation, stiffness=isotropic(200.0, 20.0))
    push = np.array([[[10.0, 0, 0, 0, 0, 0]]])
    path = []
    for mass in (0.5, 8.0):
        made = Admittance(1, settings=AdmittanceSettings(mass=mass))
        made.reset(position, rotation)
        run(made, goal, push, 10)
        early = made.position[0, 0, 0]
        run(made, goal, push, 400)
        path.append((early, made.position[0, 0, 0]))
    assert path[1][0] < 0.5 * path[0][0]
    assert path[0][1] == pytest.approx(0.05, abs=1e-4) and path[1][1] == pytest.approx(0.05, abs=1e-4)
