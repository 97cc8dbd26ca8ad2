"""Values of eight numbers in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from retorque.physics.backends.tree.kernel import F1, kernel
from retorque.physics.backends.tree.lanes import LANES, dot, load, loads, spread, store, stores


@kernel(f"void({F1}, {F1})")
def arithmetic(w, out):
    x, y = loads(w, 1, 2)
    z = load(w, 1 + LANES)
    total = x * z - 2.0 * y
    total += 0.5
    stores(out, 0, (total, -x / z, 3.0))
    store(out, 3 * LANES, spread(w, 2) * x + dot(w, 0, w, LANES, 2))


def test_every_operation_acts_lane_by_lane() -> None:
    w = np.random.default_rng(0).uniform(1.0, 2.0, 4 * LANES)
    out = np.zeros(5 * LANES)
    arithmetic(w, out)
    x, y = w[1 : 1 + LANES], w[1 + LANES : 1 + 2 * LANES]
    row = w.reshape(4, LANES)
    expected = [x * y - 2.0 * y + 0.5, -x / y, np.full(LANES, 3.0), w[2] * x + row[0] * row[1] + row[1] * row[2]]
    np.testing.assert_allclose(out[: 4 * LANES].reshape(4, LANES), expected, rtol=1e-14)
    assert not out[4 * LANES :].any()
