"""The last ticks come newest first, in one piece, however many there were."""

import numpy as np

from retorque.adapt.tam.recent import ROOM, Recent
from retorque.robots.state import State


def test_the_last_ticks_come_newest_first():
    rng = np.random.default_rng(0)
    recent = Recent(5, 2, 3)
    reports = rng.standard_normal((3 * ROOM * 5, 3, 2, 3))
    for tick, report in enumerate(reports):
        recent.add(State(tick * 1e-3, *report))
        seen = [reports[max(tick - back, 0)] for back in range(5)]  # the first report stands for all before it
        np.testing.assert_array_equal(recent.last(0, 5), np.swapaxes(seen, 0, 1))
        np.testing.assert_array_equal(recent.last(1, 4), np.swapaxes(seen[1:4], 0, 1))
    assert recent.last(0, 5)[0].flags.c_contiguous


def test_reset_forgets():
    recent = Recent(4, 1, 2)
    for value in (1.0, 2.0):
        recent.add(State(0.0, *np.full((3, 1, 2), value)))
    recent.reset()
    recent.add(State(0.0, *np.full((3, 1, 2), 7.0)))
    assert np.all(recent.last(0, 4) == 7.0)
