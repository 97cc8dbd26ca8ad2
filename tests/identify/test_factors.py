"""A log as small triangles: all that least squares needs, in whatever pieces it came; and how long noise remembers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.identify.regression.factors import Factors, merge, triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.noise import autocorrelation_time
from retorque.identify.regression.prior import Prior, card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import column_deviation, compress, gaussian, posterior
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")
LAYOUT = Layout(ARM, preset("coulomb-viscous"))
BODY = RigidBody(ARM)


def motion(samples: int = 300, seed: int = 0) -> Motion:
    rng = np.random.default_rng(seed)
    return Motion.of(*rng.normal(0.0, 1.0, (3, samples, ARM.n)), rng.normal(0.0, 5.0, (samples, ARM.n)))


def factors(*motions: Motion) -> Factors:
    out = Factors(LAYOUT)
    for one in motions:
        out.add(BODY, one)
    return out


def test_a_triangle_keeps_every_product() -> None:
    rows = np.random.default_rng(0).normal(0.0, 1.0, (50, 7))
    wanted = rows.T @ rows
    np.testing.assert_allclose(triangle(rows.copy()).T @ triangle(rows.copy()), wanted, atol=1e-9)
    assert triangle(rows[:3].copy()).shape == (3, 7)  # never taller than wide, never taller than it was


def test_pieces_make_the_same_factors() -> None:
    whole = motion()
    once = factors(whole)
    for other in (factors(whole[:100], whole[100:]), merge([factors(whole[:7]), factors(whole[7:]), Factors(LAYOUT)])):
        assert other.count == once.count == 300
        for a, b in zip(once.of_joint, other.of_joint, strict=True):
            np.testing.assert_allclose(a.T @ a, b.T @ b, rtol=1e-9, atol=1e-7)
        np.testing.assert_array_equal(other.lowest, once.lowest)
        np.testing.assert_array_equal(other.highest, once.highest)


def test_squared_residuals_are_those_of_the_samples() -> None:
    whole, vector = motion(), np.random.default_rng(1).normal(0.0, 0.3, LAYOUT.size)
    error = whole.torque - LAYOUT.torque(BODY, vector, whole.q, whole.qd, whole.qdd)
    np.testing.assert_allclose(factors(whole).squared_residual(vector), np.sum(error**2, axis=0), rtol=1e-9)


def test_the_posterior_solves_the_normal_equations() -> None:
    whole, prior = motion(), card_prior(LAYOUT)
    weight = np.linspace(0.5, 2.0, ARM.n)
    belief = posterior(factors(whole), weight, prior)
    rows = LAYOUT.matrix(BODY, whole) * np.sqrt(weight)[:, None]
    flat, right = rows.reshape(-1, LAYOUT.size), (whole.torque * np.sqrt(weight)).ravel()
    precision = flat.T @ flat + prior.root.T @ prior.root
    wanted = np.linalg.solve(precision, flat.T @ right + prior.root.T @ prior.root @ prior.mean)
    np.testing.assert_allclose(belief.mean, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(precision), rtol=1e-5, atol=1e-10)


def test_without_equations_the_prior_is_left() -> None:
    prior = Prior(mean=np.array([1.0, -2.0]), root=np.diag([2.0, 4.0]))
    belief = gaussian(np.zeros((1, 3)), prior)
    np.testing.assert_allclose(belief.mean, prior.mean)
    np.testing.assert_allclose(np.sqrt(np.diagonal(belief.covariance)), prior.deviation)


def test_what_equations_do_not_say_has_no_error_bar() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(0.0, 1.0, (200, 3))
    tall = np.column_stack([rows, rows[:, 0] + rows[:, 1], np.zeros(200)])
    found = column_deviation(tall)
    assert np.isfinite(found[2]) and np.all(np.isinf(found[[0, 1, 3, 4]]))
    free = column_deviation(rows)
    np.testing.assert_allclose(free, np.sqrt(np.diagonal(np.linalg.inv(rows.T @ rows))), rtol=1e-9)


def test_a_channel_that_never_changes_is_dead() -> None:
    whole = motion()
    torque = whole.torque.copy()
    torque[:, 3] = 1.5
    assert factors(replace(whole, torque=torque)).dead.tolist() == [False, False, False, True, False, False]
    assert not Factors(LAYOUT).dead.any()


def test_too_little_is_refused() -> None:
    with pytest.raises(RetorqueError, match="only 5 usable samples"):
        compress(motion(5), LAYOUT)
    with pytest.raises(RetorqueError, match="no usable sample"):
        merge([Factors(LAYOUT)])


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_noise_remembers_as_long_as_its_recursion(memory: float) -> None:
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((60_000, 2))
    for k in range(1, len(noise)):
        noise[k] += memory * noise[k - 1]
    np.testing.assert_allclose(autocorrelation_time(noise), (1.0 + memory) / (1.0 - memory), rtol=0.15)


def test_noise_never_counts_for_more_than_it_is() -> None:
    rng = np.random.default_rng(4)
    differenced = np.diff(rng.standard_normal((2000, 1)), axis=0)
    assert autocorrelation_time(differenced).tolist() == [1.0]
    assert autocorrelation_time(np.zeros((100, 2))).tolist() == [1.0, 1.0]
    assert autocorrelation_time(rng.standard_normal((10, 3))).tolist() == [1.0, 1.0, 1.0]


def test_a_card_of_rods_and_points_is_still_a_prior() -> None:
    links = tuple(replace(link, inertia=(0.0,) * 6) for link in ARM.links)
    points = ARM.with_links(links)
    assert np.all(np.linalg.eigvalsh(reference_pseudo_inertia(points)) > 0.0)
    prior = card_prior(Layout(points, preset("none")))
    assert np.all(np.isfinite(prior.deviation)) and np.all(prior.deviation > 0.0)


def test_a_link_may_be_wrong_by_its_own_size() -> None:
    prior = card_prior(LAYOUT)
    mass = np.array([link.mass for link in ARM.moving_links])
    np.testing.assert_allclose(prior.deviation[: 10 * LAYOUT.links : 10], np.sqrt(2.0) * mass, rtol=0.6)
    half = card_prior(LAYOUT, relative=0.5)
    split = 10 * LAYOUT.links
    np.testing.assert_allclose(half.deviation[:split], 0.5 * prior.deviation[:split])
