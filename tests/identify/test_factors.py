"""The small steps under every estimate: triangles, what a prior alone says, what equations do not say, noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.identify.regression.factors import triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.noise import autocorrelation_time
from retorque.identify.regression.prior import Prior, card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import column_deviation, gaussian
from retorque.physics.friction import preset
from retorque.robots.robot import Robot

ARM = Robot.load("z1")
LAYOUT = Layout(ARM, preset("coulomb-viscous"))


def test_a_triangle_keeps_every_product() -> None:
    rows = np.random.default_rng(0).normal(0.0, 1.0, (50, 7))
    wanted = rows.T @ rows
    np.testing.assert_allclose(triangle(rows.copy()).T @ triangle(rows.copy()), wanted, atol=1e-9)
    assert triangle(rows[:3].copy()).shape == (3, 7)  # never taller than wide, never taller than it was


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
