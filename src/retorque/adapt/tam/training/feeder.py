"""The schedule by which shards join a training."""

from __future__ import annotations

from pathlib import Path

from retorque.adapt.tam.training.cluster import RayTasks
from retorque.adapt.tam.training.makers import Elsewhere, InBetween, Maker, Processes
from retorque.adapt.tam.training.pool import Pool
from retorque.adapt.tam.training.shards import Recipe, shard_path
from retorque.adapt.tam.training.train_settings import TrainSettings


class Feeder:
    """Hands shards to the pool when they are due, whoever makes them; used as a context."""

    def __init__(self, folder: Path, recipe: Recipe, settings: TrainSettings, step: int, first_process: bool):
        """At a step of the run; only its first process makes shards, the others wait for its files."""
        self._folder, self._settings, self._robots = folder, settings, len(recipe.robots)
        self.taken = max(0, self.due(step) - settings.capacity)  # what came before has left the pool already
        self._maker = _maker(folder, recipe, settings, self.taken) if first_process else Elsewhere()

    def __enter__(self) -> Feeder:
        self._maker.__enter__()
        return self

    def __exit__(self, *reason: object) -> None:
        self._maker.__exit__(*reason)

    def due(self, step: int) -> int:
        """How many shards have joined by a step."""
        return (self._settings.first_shards or self._robots) + step // self._settings.steps_per_shard

    def feed(self, pool: Pool, step: int) -> bool:
        """Give the pool what is due at a step, waiting for it where necessary; whether anything came."""
        due, before = self.due(step), self.taken
        self._maker.want(self.taken, due + max(2, self._settings.workers))  # ahead, so that no maker is idle
        while self.taken < due:
            path = shard_path(self._folder, self.taken)
            while not path.exists():
                self._maker.bring(self.taken)
            pool.add(path)
            self.taken += 1
        return self.taken > before


def _maker(folder: Path, recipe: Recipe, settings: TrainSettings, first: int) -> Maker:
    if settings.cluster:
        return RayTasks(folder, recipe, settings.cluster, max(1, settings.workers))
    if settings.workers:
        return Processes(folder, recipe, settings.workers, first)
    return InBetween(folder, recipe)
