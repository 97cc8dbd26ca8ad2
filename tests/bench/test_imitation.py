"""The bench of imitation: rows of what was scored, and the policies on board."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.bench.comply import imitation
from retorque.bench.comply.imitation import POLICIES, Settings, run
from retorque.bench.report import wilson
from retorque.robots.robot import Robot
from retorque.tasks.scoop.diffusion_network import ACTIONS, load_diffusion
from retorque.tasks.scoop.pose_numbers import pose_numbers
from retorque.tasks.scoop.scoop_task import ScoopScore, ScoopSettings, ScoopTask


def test_rows_are_rates_with_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(work: object, jobs: list[tuple[object, ...]], *rest: object) -> list[ScoopScore]:
        return [ScoopScore(np.arange(10) < 3 + k, np.full(10, 5.0 + k)) for k in range(len(jobs))]

    monkeypatch.setattr(imitation, "run_jobs", made_up)
    report = run(Settings(trials=10, methods=("x_des, compliance", "x_ref, position")))
    assert [row.mean for row in report.rows] == pytest.approx([0.3, 0.4])
    assert [row.paper for row in report.rows] == [0.8, 0.4]
    assert report.rows[0].ci95 == wilson(np.arange(10) < 3)
    assert report.rows[1].extra["largest peak [N]"] == 6.0 and report.rows[1].extra["succeeded"] == 4


def test_every_method_says_who_leads_and_who_follows() -> None:
    assert {lead for lead, _ in POLICIES.values()} == {*ACTIONS, "script"}
    assert {follow for _, follow in POLICIES.values()} == {"retorque", "position"}


@pytest.mark.parametrize("action", ACTIONS)
def test_policies_on_board_begin_where_the_spoon_is(action: str) -> None:
    task = ScoopTask(ScoopSettings(trials=1, seed=1000))
    network = load_diffusion(action, robot=Robot.load("arx_x5"))
    seen = np.concatenate([pose_numbers(*task.begin()), task.place], axis=-1)
    chunk = network(seen, np.random.default_rng(0))
    assert chunk.shape == (1, 30, 9) and np.isfinite(chunk).all()
    assert np.abs(chunk[0, 0, :3] - seen[0, :3]).max() < 0.02
    assert np.abs(chunk[0, 20, 1] - task.place[0, 1]).max() < 0.02  # two seconds later it is behind the ball
