"""Other readings of a log, and that the right one explains a mistaken log best."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from retorque.identify.verdict.doubts import scales
from retorque.identify.verdict.reading import INDEPENDENT, Reading, permuted, turned
from retorque.identify.verdict.sample import shifted, thinned
from retorque.identify.verdict.search import Guess, guesses, hidden_offset, likely, moved, turn
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

ARM = Robot.load("z1")
N = ARM.n
FRICTION = preset("coulomb-viscous")


@cache
def well(samples: int = 1500) -> Motion:
    """A lively motion of the card's own arm with some friction and noise."""
    rng = np.random.default_rng(0)
    w = rng.uniform(0.8, 5.0, (N, 3))
    angle = w * (0.01 * np.arange(samples)[:, None, None]) + rng.uniform(0.0, 6.0, w.shape)
    size = rng.uniform(0.2, 0.5, w.shape) / np.sqrt(w)
    q = ARM.home + np.sum(size * np.sin(angle), axis=-1)
    qd, qdd = np.sum(size * w * np.cos(angle), axis=-1), -np.sum(size * w**2 * np.sin(angle), axis=-1)
    torque = RigidBody(ARM).inverse_dynamics(q, qd, qdd) + 0.3 * np.tanh(qd / 0.05) + 0.2 * qd
    return Motion.of(q, qd, qdd, torque + 0.05 * rng.standard_normal(q.shape), 0.01)


def best(motion: Motion, causes: set[str]) -> Guess:
    """The guess of some causes that explains a log best."""
    at = thinned(motion)
    reading = Reading(ARM, FRICTION, motion[at])
    found = [guess for guess in guesses(reading, motion, at) if guess.cause in causes]
    return min(found, key=lambda guess: guess.fit().score)


def test_a_log_that_is_well_is_read_best_as_it_is() -> None:
    motion = well()
    at = thinned(motion)
    reading = Reading(ARM, FRICTION, motion[at])
    own = reading.fit()
    assert np.all(own.share < 0.3) and not np.any(own.backwards)
    assert all(guess.fit().score > own.score for guess in likely(reading))


def test_exchanged_torques_are_found() -> None:
    found = best(permuted(well(), np.array([0, 2, 1, 3, 4, 5]), "torque"), {"permutation"})
    assert "the torques of joint2 and joint3 exchanged" in found.words


def test_a_reversed_torque_is_found() -> None:
    torque = well().torque * np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    found = best(replace(well(), torque=torque), {"sign"})
    assert f"the torque of {ARM.joint_names[1]} counted the other way" in found.words


def test_late_torques_are_found() -> None:
    motion = well()
    late = replace(motion[100:], torque=motion.torque[: len(motion) - 100])  # one second
    found = best(late, {"time shift"})
    assert "later" in found.words and 900.0 < float(found.words.split(" ms")[0].split(" ")[-1]) < 1100.0


def test_another_zero_is_found() -> None:
    motion = turned(well(), 1, 0.5 * np.pi)
    found = best(motion, {"joint offset"})
    assert "-90 degrees" in found.words and ARM.joint_names[1] in found.words


def test_units_are_found() -> None:
    reading = Reading(ARM, FRICTION, replace(well(), torque=10.0 * well().torque)[thinned(well())])
    assert scales(reading).common == pytest.approx(10.0, rel=0.1)
    found = best(replace(well(), torque=10.0 * well().torque), {"scale"})
    assert "divided by" in found.words


def test_one_joints_unit_is_found() -> None:
    found = best(replace(well(), torque=well().torque * np.array([1.0, 1.0, 3.0, 1.0, 1.0, 1.0])), {"scale"})
    assert f"the torque of {ARM.joint_names[2]} divided by 3" in found.words


def test_a_log_without_weight_is_found_at_once() -> None:
    motion, still = well(), np.zeros_like(well().q)
    floating = replace(motion, torque=motion.torque - RigidBody(ARM).inverse_dynamics(motion.q, still, still))
    reading = Reading(ARM, FRICTION, floating[thinned(floating)])
    found = min(likely(reading), key=lambda guess: guess.fit().score)
    assert found.cause == "gravity" and reading.fit().score - found.fit().score > 50.0


def test_torque_that_is_only_added_is_no_better_explanation() -> None:
    """The same error is a smaller share of a larger torque: adding weight to a log that has it must not pay."""
    reading = Reading(ARM, FRICTION, well()[thinned(well())])
    gravity = next(likely(reading))
    plain = INDEPENDENT * float(np.sum(np.log(np.std(gravity.torque, axis=0) / reading.spread)))
    assert gravity.cause == "gravity" and plain > 0.0 and gravity.easier == pytest.approx(plain, rel=1e-6)


def test_an_offset_hidden_in_the_links_is_found_and_none_where_there_is_none() -> None:
    limits = np.deg2rad(3.5), 2.0, 8.0
    assert hidden_offset(Reading(ARM, FRICTION, well()[thinned(well())]), *limits) is None
    off = turned(well(), 2, np.deg2rad(-6.0))
    found = hidden_offset(Reading(ARM, FRICTION, off[thinned(off)]), *limits)
    assert found is not None and ARM.joint_names[2] in found[0].words and found[1] > 8.0


def test_a_load_that_appears_is_found_with_its_mass_and_moment() -> None:
    motion = well()
    parameters = Parameters.ideal(ARM).with_payload(1.5, np.array([0.0, 0.0, 0.1]), 0.004 * np.eye(3))
    loaded, bare = RigidBody(ARM, parameters.total_inertial(ARM), ARM.armature), RigidBody(ARM)
    state = (motion.q, motion.qd, motion.qdd)
    extra = (motion.time > 7.5)[:, None] * (loaded.inverse_dynamics(*state) - bare.inverse_dynamics(*state))
    found = best(replace(motion, torque=motion.torque + extra), {"load"})
    mass, after = (float(word) for word in re.findall(r"[\d.]+", found.words)[:2])
    assert "picked up" in found.words and mass == pytest.approx(1.5, abs=0.15) and after == pytest.approx(7.5, abs=1.0)
    assert "put down" in best(replace(motion, torque=motion.torque - extra), {"load"}).words


def test_torques_moved_in_time_keep_their_ends() -> None:
    motion = well()
    later = moved(motion, 0.5)
    np.testing.assert_allclose(later.torque[100:1000], motion.torque[150:1050])
    np.testing.assert_array_equal(later.torque[-10:], motion.torque[-10:])


def test_a_scale_is_only_read_where_the_card_foresees_a_torque() -> None:
    """A light wrist whose torque is all its rotor's has no scale, whatever its card's inertia would have to be."""
    motion = well()
    torque = motion.torque.copy()
    torque[:, -1] = 0.3 * motion.qdd[:, -1] + 0.2 * np.tanh(motion.qd[:, -1] / 0.05)
    found = scales(Reading(ARM, FRICTION, replace(motion, torque=torque)[thinned(motion)]))
    assert np.isnan(found.joint[-1]) and found.common == pytest.approx(1.0, rel=0.05)


def test_a_turn_says_what_it_means() -> None:
    guess = turn(Reading(ARM, FRICTION, well()[:50]), 2, np.deg2rad(-6.0))
    assert guess.cause == "joint offset" and "-6 degrees" in guess.words and ARM.joint_names[2] in guess.words
    np.testing.assert_allclose(guess.reading.motion.q[:, 2], well().q[:50, 2] + np.deg2rad(-6.0))


def test_moments_between_samples_are_interpolated() -> None:
    motion = replace(well(), torque=well().time[:, None] * np.arange(1.0, N + 1.0))
    at = np.arange(100, 1400, 50)
    for seconds in (0.0, 0.013, -0.257):
        torque, there = shifted(motion, at, seconds)
        assert np.all(there)
        np.testing.assert_allclose(torque, (motion.time[at] + seconds)[:, None] * np.arange(1.0, N + 1.0), atol=1e-9)
    assert not shifted(motion, np.array([0, 1499]), -0.05)[1][0]
