"""What raw channels give away by themselves, however a log is cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.logs.channels import Channels, Runs

N, RATE, SECONDS = 3, 100.0, 10.0
NAMES = ("a", "b", "c")
TIME = np.arange(round(RATE * SECONDS)) / RATE


def live() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and efforts of joints that move."""
    rng = np.random.default_rng(0)
    phase = TIME[:, None] + np.arange(N)
    return np.sin(phase), np.cos(phase), np.sin(phase) + 0.01 * rng.standard_normal((len(TIME), N))


def findings(
    q: np.ndarray, qd: np.ndarray | None, effort: np.ndarray, blocks: int = 1, time: np.ndarray = TIME
) -> dict[str, str]:
    channels = Channels(N)
    for rows in np.array_split(np.arange(len(time)), blocks):
        channels.add(time[rows], q[rows], None if qd is None else qd[rows], effort[rows])
    return dict(channels.findings(NAMES))


def test_live_channels_are_left_alone() -> None:
    assert not findings(*live()) and not Channels(N).findings(NAMES)


@pytest.mark.parametrize("blocks", [1, 3, 17])
def test_a_run_is_as_long_as_it_is_in_whatever_blocks(blocks: int) -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, (len(TIME), N))
    values[200:450, 1] = 7.0
    runs = Runs(N)
    for rows in np.array_split(np.arange(len(TIME)), blocks):
        runs.add(TIME[rows], values[rows])
    np.testing.assert_allclose(runs.longest, [0.0, 2.49, 0.0], atol=1e-9)
    assert runs.total[1] == pytest.approx(2.49, abs=0.02 * blocks) and runs.total[0] < 0.02 * blocks


@pytest.mark.parametrize("blocks", [1, 7])
def test_dead_frozen_and_empty_channels_are_named(blocks: int) -> None:
    q, qd, effort = live()
    dead = effort.copy()
    dead[:, 1] = 0.3
    assert "effort of b " in findings(q, qd, dead, blocks)["dead channel"]
    stuck = effort.copy()
    stuck[300:600, 2] = stuck[300, 2]
    assert "effort of c " in findings(q, qd, stuck, blocks)["frozen channel"]
    frozen = q.copy()
    frozen[:, 0] = 0.2
    assert "position of a " in findings(frozen, qd, effort, blocks)["frozen channel"]
    assert "single count" in findings(frozen, None, effort, blocks)["frozen channel"]
    empty = effort.copy()
    empty[100:400] = 0.0
    assert "3.0 s" in findings(q, qd, empty, blocks)["zeros"]
    assert findings(q, qd, np.zeros_like(effort), blocks)["dead channel"] == "no effort was recorded"


def test_a_coarse_channel_that_waits_now_and_then_is_live() -> None:
    q, qd, effort = live()
    assert not findings(q, qd, np.round(effort, 1))


def test_a_joint_that_stands_still_is_no_frozen_encoder() -> None:
    q, qd, effort = live()
    q[:, 0] = 0.2 + 1e-6 * np.random.default_rng(2).standard_normal(len(TIME))
    qd[:, 0] = 0.0
    assert not findings(q, qd, effort)


def test_rows_that_are_no_numbers_do_not_count() -> None:
    q, qd, effort = live()
    q[50], effort[70] = np.nan, np.inf
    assert not findings(q, qd, effort)
    channels = Channels(N)
    channels.add(TIME[:1], q[:1], None, effort[:1])
    assert channels.time == 0.0
