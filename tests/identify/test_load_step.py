"""A load that comes or goes in the middle of a log: its moment, its mass, and that none is seen where none is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.identify.verdict.load_step import LIGHT, LoadStep, appeared
from retorque.identify.verdict.reading import Reading
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

ARM = Robot.load("z1")
BODY = RigidBody(ARM)
FRICTION = preset("coulomb-viscous")
PERIOD = 0.03


def lively(seed: int = 0, samples: int = 400) -> Motion:
    """A motion of the card's own arm, with friction and noise."""
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.8, 5.0, (ARM.n, 3))
    angle = rate * (PERIOD * np.arange(samples)[:, None, None]) + rng.uniform(0.0, 6.0, rate.shape)
    size = rng.uniform(0.2, 0.5, rate.shape) / np.sqrt(rate)
    q = ARM.home + np.sum(size * np.sin(angle), axis=-1)
    qd = np.sum(size * rate * np.cos(angle), axis=-1)
    qdd = -np.sum(size * rate**2 * np.sin(angle), axis=-1)
    torque = BODY.inverse_dynamics(q, qd, qdd) + 0.3 * np.tanh(qd / 0.05) + 0.2 * qd
    return Motion.of(q, qd, qdd, torque + 0.05 * rng.standard_normal(q.shape), PERIOD)


def loaded(motion: Motion, mass: float, time: float) -> Motion:
    """The same log, with a mass at the hand from some time on; a negative one: until then."""
    moment = np.array([mass, *(mass * np.array([0.05, 0.0, 0.03]))])
    added = LoadStep(time=time, moment=moment).torque(BODY, motion)
    if mass < 0.0:  # it was there before and is gone after
        added = added + LoadStep(time=0.0, moment=-moment).torque(BODY, motion)
    return replace(motion, torque=motion.torque + added)


def found_in(motion: Motion) -> LoadStep | None:
    reading = Reading(ARM, FRICTION, motion)
    return appeared(reading, reading.fit())


def test_at_rest_its_torque_is_the_weight_of_a_heavier_last_link() -> None:
    moving, mass, centre = lively(samples=40), 0.7, np.array([0.04, -0.01, 0.08])
    none = np.zeros_like(moving.q)
    motion = replace(moving, qd=none, qdd=none)
    load = LoadStep(time=float(motion.time[20]), moment=np.array([mass, *(mass * centre)]))
    last = ARM.moving_links[-1]
    total = last.mass + mass
    middle = tuple((last.mass * np.asarray(last.centre) + mass * centre) / total)
    heavier = replace(last, mass=total, centre=middle)
    other = RigidBody(replace(ARM, links=tuple(heavier if link is last else link for link in ARM.links)))
    more = other.inverse_dynamics(motion.q, none, none) - BODY.inverse_dynamics(motion.q, none, none)
    torque = load.torque(BODY, motion)
    assert np.all(torque[:20] == 0.0)
    np.testing.assert_allclose(torque[20:], more[20:], atol=1e-9)
    assert load.mass == mass


@pytest.mark.parametrize(("time", "mass"), [(3.0, 1.0), (9.0, 2.5), (6.0, -1.5)])
def test_the_moment_and_the_mass_are_found(time: float, mass: float) -> None:
    found = found_in(loaded(lively(), mass, time))
    assert found is not None
    assert abs(found.time - time) < 0.3
    assert found.mass == pytest.approx(mass, rel=0.25)


@pytest.mark.parametrize("seed", range(2))
def test_where_nothing_is_picked_up_nothing_heavy_is_seen(seed: int) -> None:
    found = found_in(lively(seed))
    arm = sum(link.mass for link in ARM.moving_links)
    assert found is None or abs(found.mass) < 3.0 * LIGHT * arm


def test_a_log_too_short_to_split_has_none() -> None:
    assert found_in(lively(samples=30)) is None
