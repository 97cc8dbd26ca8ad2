"""Shards join a training on schedule, in order and once, whoever makes them and wherever it was interrupted."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.learn.feeder import Feeder, ShardSchedule
from retorque.learn.makers import Elsewhere, InBetween, Processes
from retorque.learn.shards import make_shard, shard_path
from retorque.work.errors import RetorqueError


class Counted:
    """Remembers which shards were made."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def make(self, index: int) -> bytes:
        self.made.append(index)
        return f"shard {index}".encode()


def numbers(paths: list[Path]) -> list[int]:
    return [int(path.stem.removeprefix("shard-")) for path in paths]


SCHEDULES = st.builds(
    ShardSchedule,
    first=st.integers(1, 6),
    steps_per_shard=st.integers(1, 50),
    capacity=st.integers(1, 6),
    workers=st.just(0),
)


@settings(max_examples=50, deadline=None)
@given(schedule=SCHEDULES, steps=st.integers(0, 300))
def test_shards_are_due_one_after_a_fixed_number_of_steps(schedule: ShardSchedule, steps: int) -> None:
    due = [schedule.due(step) for step in range(steps + 1)]
    assert due[0] == schedule.first and all(0 <= b - a <= 1 for a, b in itertools.pairwise(due))
    assert due[-1] - due[0] == steps // schedule.steps_per_shard


@settings(max_examples=25, deadline=None)
@given(schedule=SCHEDULES, stop=st.integers(0, 60), more=st.integers(1, 60))
def test_a_resumed_run_holds_what_an_uninterrupted_one_holds(
    schedule: ShardSchedule, stop: int, more: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last `capacity` shards, in the same order; shards that have left are not made again."""

    def pool(folder: Path, recipe: Counted, first: int, last: int) -> list[int]:
        taken: list[Path] = []
        with Feeder(folder, recipe, schedule, first, first_process=True) as feeder:
            for step in range(first, last + 1):
                before = len(taken)
                assert feeder.feed(taken.append, step) == (len(taken) > before)
        return numbers(taken)[-schedule.capacity :]

    whole = pool(tmp_path_factory.mktemp("whole"), Counted(), 0, stop + more)
    folder, recipe = tmp_path_factory.mktemp("parts"), Counted()
    pool(folder, recipe, 0, stop)
    assert pool(folder, recipe, stop, stop + more) == whole
    assert len(set(recipe.made)) == len(recipe.made)
    fresh = Counted()
    with Feeder(tmp_path_factory.mktemp("moved"), fresh, schedule, stop + more, first_process=True) as feeder:
        feeder.feed(lambda path: None, stop + more)
    assert fresh.made == whole  # in a new folder only what is still needed is made


def test_a_shard_that_is_there_is_read_and_not_made(tmp_path: Path) -> None:
    shard_path(tmp_path, 1).write_bytes(b"from another run of the same recipe")
    recipe = Counted()
    seen: list[bytes] = []
    schedule = ShardSchedule(first=3, steps_per_shard=10, capacity=9, workers=0)
    with Feeder(tmp_path, recipe, schedule, 0, first_process=True) as feeder:
        feeder.feed(lambda path: seen.append(path.read_bytes()), 0)
    assert recipe.made == [0, 2] and seen[1].startswith(b"from another")


def test_the_other_processes_of_a_run_make_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, waited = Counted(), []

    def a_moment(maker: Elsewhere, index: int) -> None:
        waited.append(index)
        make_shard(tmp_path, index, Counted())  # the first process gets there

    monkeypatch.setattr(Elsewhere, "bring", a_moment)
    schedule = ShardSchedule(first=2, steps_per_shard=10, capacity=9, workers=4)
    seen: list[Path] = []
    with Feeder(tmp_path, recipe, schedule, 0, first_process=False) as feeder:
        feeder.feed(seen.append, 0)
    assert recipe.made == [] and waited == [0, 1] and numbers(seen) == [0, 1]


def test_a_recipe_that_fails_leaves_no_shard_behind(tmp_path: Path) -> None:
    class Fails:
        def make(self, index: int) -> bytes:
            raise RetorqueError("the card has no motors; name another robot")

    with pytest.raises(RetorqueError, match="no motors"):
        InBetween(tmp_path, Fails()).bring(0)
    assert not list(tmp_path.iterdir())


RECIPE = """
import os
class Squares:
    def make(self, index):
        return str(index * index).encode()
class Ends:
    def make(self, index):
        os._exit(3)
"""


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Recipes that a spawned process can import."""
    (tmp_path / "shard_recipes.py").write_text(RECIPE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    sys.modules.pop("shard_recipes", None)
    return importlib.import_module("shard_recipes")


def test_processes_beside_the_training_make_the_same_shards_and_end_with_it(recipes, tmp_path: Path) -> None:
    schedule = ShardSchedule(first=3, steps_per_shard=1, capacity=99, workers=2)
    seen: list[bytes] = []
    with Feeder(tmp_path / "shards", recipes.Squares(), schedule, 0, first_process=True) as feeder:
        for step in range(3):
            feeder.feed(lambda path: seen.append(path.read_bytes()), step)
    assert [int(content) for content in seen] == [0, 1, 4, 9, 16]
    makers = Processes(tmp_path / "none", recipes.Squares(), 1, 0)
    with makers:
        pass
    with pytest.raises(RetorqueError, match="--workers 0 to see why"):
        makers.bring(0)  # nobody makes shards any more


def test_a_process_that_ends_is_a_sentence_and_no_endless_wait(recipes, tmp_path: Path) -> None:
    schedule = ShardSchedule(first=1, steps_per_shard=1, capacity=9, workers=1)
    with (
        pytest.raises(RetorqueError, match="--workers 0 to see why"),
        Feeder(tmp_path / "shards", recipes.Ends(), schedule, 0, first_process=True) as feeder,
    ):
        feeder.feed(lambda path: None, 0)
