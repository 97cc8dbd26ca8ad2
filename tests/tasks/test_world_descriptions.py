"""The worlds as data: motions, touches, changes, faults and walls are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.tasks.worlds import FAMILIES, WORLDS
from retorque.tasks.worlds.bodies import true_body, wider
from retorque.tasks.worlds.changes import Changes
from retorque.tasks.worlds.motions import reference
from retorque.tasks.worlds.reports import FAULTS, broken_reports
from retorque.tasks.worlds.touches import TOUCHES, touch_of
from retorque.tasks.worlds.walls import GAP, wall_place
from retorque.tasks.worlds.world_task import WorldTask, joint_error
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")


def test_at_least_half_of_the_families_were_never_trained_on() -> None:
    trained = {world.family for world in WORLDS.values() if world.trained}
    assert {world.family for world in WORLDS.values()} == set(FAMILIES)
    assert 2 * len(trained) <= len(FAMILIES)
    for world in WORLDS.values():
        assert world.touch in ("", *TOUCHES, "wall", "wall-elbow", "wall-lean")
        assert world.fault in ("", *FAULTS)


@pytest.mark.parametrize("motion", ("sines", "slow", "stepped", "held", "teleoperated", "fast", "press"))
def test_motions_start_at_home_and_stay_inside_the_velocity_limits(motion: str) -> None:
    followed = reference(PANDA, motion, 3, 8.0, 5, np.full(PANDA.n, 0.1))
    np.testing.assert_allclose(followed.at(0.0).position, np.broadcast_to(PANDA.home, (3, 7)), atol=1e-9)
    speed = np.array([followed.at(t).velocity for t in np.arange(0.0, 8.0, 0.02)])
    assert np.all(np.isfinite(speed)) and np.all(np.abs(speed) <= PANDA.velocity_limit)
    if motion == "fast":
        assert np.max(np.abs(speed) / PANDA.velocity_limit) > 0.6


def test_payloads_come_and_go_and_gains_step_when_they_should() -> None:
    start = Parameters.sample(PANDA, profile_of(PANDA), 2, 3)
    cycles = Changes(PANDA, "cycles", start, 16.0, 0)
    mass = start.payload_mass
    for time, more in ((4.0, 2.0), (8.0, 0.0), (12.0, 2.0)):
        now = cycles.due(time, 1e-3)
        assert now is not None
        np.testing.assert_allclose(now.payload_mass, mass + more)
    assert cycles.due(5.0, 1e-3) is None
    step = Changes(PANDA, "gain-step-joint", start, 16.0, 0).due(8.0, 1e-3)
    assert step is not None
    assert (step.torque_scale / start.torque_scale).min(axis=(1, 2)) == pytest.approx(0.85)
    assert np.sum(step.torque_scale != start.torque_scale) == 2 * 2
    warm = Changes(PANDA, "thermal", start, 16.0, 0)
    assert np.all(warm.first().friction_amplitude > start.friction_amplitude)
    assert Changes(PANDA, "", start, 16.0, 0).due(8.0, 1e-3) is None


def test_pushes_have_the_sizes_told_and_lasting_ones_last() -> None:
    push = touch_of(PANDA, "push-arm-long", 50, 16.0, 2)
    size = np.linalg.norm(push.force, axis=-1)
    assert size.min() >= 5.0 and size.max() <= 80.0
    assert push.duration.min() >= 2.0 and push.duration.max() <= 4.0
    ends = push.start + push.duration
    assert np.all(push.start[:, 1:] >= ends[:, :-1]) and ends.max() <= 16.0
    lean = touch_of(PANDA, "lean", 4, 16.0, 2)
    np.testing.assert_allclose(np.linalg.norm(lean.at(9.0), axis=-1), 20.0)
    assert not lean.at(3.9).any() and not lean.at(14.1).any()
    assert touch_of(PANDA, "wall", 1, 16.0, 0) is None


def faulty(fault: str, seconds: float) -> tuple[list, list]:
    target = Target(PANDA, Parameters.ideal(PANDA, 2), threads=1)
    plant = broken_reports(target, fault, 1)
    told, true = [], []
    for tick in range(round(seconds / 0.05)):
        target._ticks = 50 * tick
        target.velocity[...] = 0.1 * (tick + 1)
        target.position[...] = PANDA.home + 0.01 * tick
        target.command = np.full((2, 7), float(tick))
        told.append(plant.read())
        true.append((target.time, target.position.copy(), target.velocity.copy(), target.command.copy()))
    return told, true


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_begin_end_and_change_only_what_they_say(fault: str) -> None:
    told, true = faulty(fault, 14.0)
    wrong = [
        not (
            np.isclose(s.time, t[0])
            and all(np.array_equal(a, b) for a, b in zip((s.position, s.velocity, s.torque), t[1:], strict=True))
        )
        for s, t in zip(told, true, strict=True)
    ]
    if fault in ("nan", "repeated", "jitter", "clock-back"):
        assert any(wrong)
        return
    assert not any(wrong[:79]) and all(wrong[81:85]) and not any(wrong[-10:])
    same_position = [np.array_equal(s.position, t[1]) for s, t in zip(told, true, strict=True)]
    assert all(same_position) != (fault == "encoder-dead")


@pytest.mark.parametrize("name", SEVEN)
@pytest.mark.parametrize("kind", ("wall", "wall-elbow"))
def test_walls_stand_free_before_every_arm_and_the_move_goes_into_them(name: str, kind: str) -> None:
    robot = Robot.load(name)
    place = wall_place(robot, kind)
    assert place is not None
    assert np.all(np.abs(place.change) < 0.6)
    body = RigidBody(robot)
    links = [robot.end_effector] if kind == "wall" else []
    for frame in links:
        before, after = (body.frame_pose(frame, robot.home + s * place.change)[0] for s in (0.0, 1.0))
        assert (before - after) @ place.normal == pytest.approx(GAP + 0.05, rel=0.25)


def test_wider_ranges_contain_the_usual_ones() -> None:
    usual, twice = profile_of(PANDA), wider(profile_of(PANDA), 2.0)
    assert np.all(twice.friction_max == 2.0 * usual.friction_max)
    assert twice.mass_scale == pytest.approx((0.8, 1.2)) and twice.payload_mass == (0.0, 3.0)


def test_other_bodies_are_other_robots() -> None:
    q = PANDA.home
    tilted, longer = (RigidBody(true_body(PANDA, kind)) for kind in ("tilted", "longer"))
    ideal = RigidBody(PANDA)
    assert np.abs(tilted.gravity(q) - ideal.gravity(q)).max() > 0.5
    moved = longer.frame_pose(PANDA.end_effector, q)[0] - ideal.frame_pose(PANDA.end_effector, q)[0]
    assert np.linalg.norm(moved) == pytest.approx(0.03, rel=1e-6)
    with pytest.raises(RetorqueError, match="tilted"):
        true_body(PANDA, "upside-down")


def test_the_same_world_is_the_same_and_nothing_hidden_is_nothing() -> None:
    world = replace(WORLDS["nothing-hidden"], duration=0.3)
    task = WorldTask(PANDA, world, 2, 7, noise=False)
    ideal = task.ideal()
    error = joint_error(task.adapted(lambda truth: _direct()), ideal)
    assert np.all(error == 0.0)
    hidden = WorldTask(PANDA, replace(WORLDS["usual"], duration=0.3), 2, 7)
    one, two = (joint_error(hidden.adapted(lambda truth: _direct()), hidden.ideal()) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.all(one > 0.0)


def _direct():
    from retorque.adapt import make

    return make("direct", PANDA, 2)
