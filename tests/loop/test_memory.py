"""What an adapter remembers goes to arrays and comes back; what does not fit is refused and nothing is half changed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from retorque.loop.belief import Belief
from retorque.loop.clock import Clock
from retorque.loop.history import History
from retorque.loop.memory import collect, restore
from retorque.robots.state import State
from retorque.work.errors import RetorqueError


class Part:
    """Something with a memory of its own."""

    remembered = ("values", "count")

    def __init__(self) -> None:
        self.values, self.count = np.zeros(3), 0


class Whole:
    """One of everything that can be remembered."""

    remembered = ("array", "number", "flag", "part", "parts", "belief", "named", "random", "odd")

    def __init__(self, seed: int = 0) -> None:
        self.array = np.zeros((2, 3), dtype=np.float32)
        self.number, self.flag, self.odd = 1.5, False, -np.inf
        self.part, self.parts = Part(), [Part(), Part()]
        self.belief = Belief.of("Whole", 0.0, torque=np.zeros(2))
        self.named = {"mean": np.zeros(2), "root": np.eye(2)}
        self.random = np.random.default_rng(seed)

    def live(self, seed: int) -> None:
        """Change everything."""
        rng = np.random.default_rng(seed)
        self.array = rng.standard_normal((2, 3)).astype(np.float32)
        self.number, self.flag, self.odd = float(rng.uniform()), True, int(rng.integers(100))
        for part in (self.part, *self.parts):
            part.values, part.count = rng.standard_normal(3), int(rng.integers(9))
        self.belief = Belief.of("Whole", 2.5, torque=rng.standard_normal(2))
        self.named = {"mean": rng.standard_normal(2), "root": rng.standard_normal((2, 2))}
        self.random.standard_normal(5)


def test_everything_comes_back() -> None:
    old, new = Whole(), Whole(seed=99)
    old.live(7)
    restore(new, collect(old))
    np.testing.assert_array_equal(new.array, old.array)
    assert new.array.dtype == np.float32
    assert (new.number, new.flag, new.odd) == (old.number, True, old.odd)
    for a, b in zip((new.part, *new.parts), (old.part, *old.parts), strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        assert a.count == b.count and type(a.count) is int
    assert new.belief.time == 2.5
    np.testing.assert_array_equal(new.belief.arrays["torque"], old.belief.arrays["torque"])
    for name, array in old.named.items():
        np.testing.assert_array_equal(new.named[name], array)
    np.testing.assert_array_equal(new.random.standard_normal(4), old.random.standard_normal(4))


def test_what_came_back_shares_no_memory() -> None:
    old, new = Whole(), Whole()
    old.live(3)
    arrays = collect(old)
    restore(new, arrays)
    new.array[:] = 7.0
    new.part.values[:] = 7.0
    assert not np.any(old.array == 7.0) and not np.any(old.part.values == 7.0)
    assert not np.any(arrays["array"] == 7.0)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    (
        ("array", np.zeros((2, 4), dtype=np.float32), "other settings"),
        ("array", np.zeros((2, 3)), "other settings"),
        ("number", np.zeros(2), "not one number"),
        ("number", np.array("text"), "not one number"),
        ("part.values", np.zeros(2), "other settings"),
        ("belief.arrays.torque", np.zeros((2, 2)), "other settings"),
        ("named.root", np.zeros(3), "other settings"),
    ),
)
def test_another_shape_or_type_is_refused(key: str, value: np.ndarray, said: str) -> None:
    arrays = {**collect(Whole()), key: value}
    with pytest.raises(RetorqueError, match=said):
        restore(Whole(), arrays)


@pytest.mark.parametrize("key", sorted(collect(Whole())))
def test_what_is_missing_is_named(key: str) -> None:
    arrays = collect(Whole())
    del arrays[key]
    with pytest.raises(RetorqueError, match=key.split(".")[0]):
        restore(Whole(), arrays)


def test_something_without_a_memory_is_not_taken_for_one() -> None:
    whole = Whole()
    whole.part = object()
    with pytest.raises(RetorqueError, match="part"):
        collect(whole)


def test_random_state_is_text_in_an_array() -> None:
    state = json.loads(collect(Whole())["random"].tobytes())
    assert state["bit_generator"] == "PCG64"


def test_a_ring_and_a_clock_go_on() -> None:
    rng = np.random.default_rng(5)
    reports = rng.standard_normal((40, 3, 2, 4))
    whole, first = History(10, 2, 4, 1e-3), History(10, 2, 4, 1e-3)
    times = 1e-3 * np.arange(40) + 1e-4 * rng.uniform(-1.0, 1.0, 40)

    def feed(history: History, ticks: range) -> None:
        for k in ticks:
            if k not in (7, 8, 25):  # two gaps
                history.add(State(float(times[k]), *reports[k]))

    feed(whole, range(40))
    feed(first, range(20))
    second = History(10, 2, 4, 1e-3)
    restore(second, collect(first))
    feed(second, range(20, 40))
    np.testing.assert_array_equal(second.last(10), whole.last(10))
    np.testing.assert_array_equal(second.valid(10), whole.valid(10))
    assert second.total == whole.total and second.time == whole.time
    clock = Clock(1e-3)
    restore(clock, collect(second.clock))
    assert clock.ticks_since(times[39] + 1e-3) == second.clock.ticks_since(times[39] + 1e-3) == 1


def test_beliefs_cannot_be_changed() -> None:
    belief = Belief.of("Whole", 1.0, torque=np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        belief.arrays["torque"][0] = 1.0
    with pytest.raises(TypeError):
        belief.arrays["other"] = np.zeros(1)
    with pytest.raises(AttributeError):
        belief.time = 2.0
