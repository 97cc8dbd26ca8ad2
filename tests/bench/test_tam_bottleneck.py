"""The bottleneck bench: its ratio, its picture, and a run of the smallest size."""

import numpy as np
import pytest

from retorque.bench.scatter import tsne
from retorque.bench.tam_bottleneck import Settings, invariance_ratios, run
from retorque.work.errors import RetorqueError


def test_the_ratio_is_small_when_latents_follow_the_condition_and_large_when_they_follow_the_motion():
    rng = np.random.default_rng(0)
    condition, motion = rng.standard_normal((6, 1, 8)), rng.standard_normal((1, 7, 8))
    assert np.mean(invariance_ratios(condition + 0.1 * motion)) < 0.3
    assert np.mean(invariance_ratios(0.1 * condition + motion)) > 3.0


def test_neighbours_stay_neighbours_in_the_plane():
    rng = np.random.default_rng(1)
    centres = 20.0 * rng.standard_normal((3, 10))
    points = np.repeat(centres, 15, axis=0) + 0.1 * rng.standard_normal((45, 10))
    plane = tsne(points, 0)
    group = np.repeat(np.arange(3), 15)
    apart = np.linalg.norm(plane[:, None] - plane[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert np.mean(group[np.argmin(apart, axis=1)] == group) > 0.95


def test_a_small_run_fills_the_table_and_draws_the_picture(tmp_path):
    pytest.importorskip("torch")
    settings = Settings(
        robot="z1",
        latents=(16,),
        steps=2,
        conditions=2,
        trajectories=3,
        shards=1,
        duration=2.0,
        rollouts=4,
        out=tmp_path / "out",
    )
    report = run(settings)
    assert [row.metric for row in report.rows] == ["held-out torque RMSE", "invariance ratio"]
    assert all(np.isfinite(row.mean) and row.paper is not None for row in report.rows)
    assert (tmp_path / "out" / "tsne.png").stat().st_size > 1000
    with pytest.raises(RetorqueError, match="at least 2 --conditions"):
        run(Settings(conditions=1))
