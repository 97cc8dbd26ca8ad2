"""One robot, served by an adapter of a batch of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.robots.state import State
from retorque.work.array import Array


class Single(Adapter):
    """An adapter whose arrays are (n,): it adds the batch's axis on the way in and takes it off on the way out.

    Args:
        adapter: of one trial.
    """

    def __init__(self, adapter: Adapter):
        self.adapter = adapter
        self.robot, self.trials = adapter.robot, adapter.trials
        self.timestep, self.seed = adapter.timestep, adapter.seed
        self.learn_every = adapter.learn_every
        self.health = adapter.health.reshape(())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.adapter, name)  # what it has learnt is read as if it were the adapter itself

    def reset(self) -> None:
        self.adapter.reset()

    def carry(self) -> None:
        self.adapter.carry()

    def resume(self) -> None:
        self.adapter.resume()

    def save(self, path: str | Path) -> None:
        self.adapter.save(path)

    def load(self, path: str | Path, *, mid_run: bool = False) -> None:
        self.adapter.load(path, mid_run=mid_run)

    def observe(self, state: State) -> None:
        self.adapter.observe(_batch_of(state))

    def due(self) -> bool:
        return self.adapter.due()

    def learn(self) -> Belief | None:
        return self.adapter.learn()

    def adopt(self, belief: Belief) -> None:
        self.adapter.adopt(belief)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        return self.adapter.correct(_batch_of(state), nominal_torque[None])[0]


def _batch_of(state: State) -> State:
    return State(state.time, state.position[None], state.velocity[None], state.torque[None])
