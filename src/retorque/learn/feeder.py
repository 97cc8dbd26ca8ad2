"""The schedule by which shards join a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retorque.learn.makers import Elsewhere, InBetween, Maker, Processes, RayTasks
from retorque.learn.shards import Recipe, shard_path


@dataclass(frozen=True, kw_only=True)
class ShardSchedule:
    """When shards join, and who makes them."""

    first: int
    """Shards to begin with."""
    steps_per_shard: int
    """A new one joins after so many steps."""
    capacity: int
    """Shards kept in memory; the oldest leave."""
    workers: int = 1
    """Processes, or tasks of the cluster at a time; 0: this process makes them in between steps."""
    cluster: str = ""
    """Address of a Ray cluster that makes them; "": this machine."""

    def due(self, step: int) -> int:
        """How many shards have joined by a step."""
        return self.first + step // self.steps_per_shard


class Feeder:
    """Hands over shards when they are due, whoever makes them; used as a context."""

    def __init__(self, folder: Path, recipe: Recipe, schedule: ShardSchedule, step: int, first_process: bool):
        """At a step of the run; only its first process makes shards, the others wait for its files."""
        self._folder, self._schedule = folder, schedule
        self.taken = max(0, schedule.due(step) - schedule.capacity)  # what came before has left already
        self._maker = _maker(folder, recipe, schedule, self.taken) if first_process else Elsewhere()

    def __enter__(self) -> Feeder:
        self._maker.__enter__()
        return self

    def __exit__(self, *reason: object) -> None:
        self._maker.__exit__(*reason)

    def feed(self, add: Callable[[Path], None], step: int) -> bool:
        """Call `add` with every shard that is due at a step, waiting for it where necessary; whether any came."""
        due, before = self._schedule.due(step), self.taken
        self._maker.want(self.taken, due + max(2, self._schedule.workers))  # ahead, so that no maker is idle
        while self.taken < due:
            path = shard_path(self._folder, self.taken)
            while not path.exists():
                self._maker.bring(self.taken)
            add(path)
            self.taken += 1
        return self.taken > before


def _maker(folder: Path, recipe: Recipe, schedule: ShardSchedule, first: int) -> Maker:
    if schedule.cluster:
        return RayTasks(folder, recipe, schedule.cluster, max(1, schedule.workers))
    if schedule.workers:
        return Processes(folder, recipe, schedule.workers, first)
    return InBetween(folder, recipe)
