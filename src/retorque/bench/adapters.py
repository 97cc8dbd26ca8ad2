"""Adapters as the benches run them: under the supervisor."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from retorque.adapt import ADAPTERS, Adapter, make
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.runtime.compiled.make import compiled
from retorque.work.errors import RetorqueError, unknown

UNSUPERVISED = ("direct", "oracle")
"""The two ends of the scale run bare."""

SETTINGS = SupervisorSettings(enable_ramp=0.0)
"""As shipped, but for the ramp: the published protocol counts the cold start from its first tick."""


def supervised(
    name: str, robot: Robot, trials: int, seed: int, truth: Callable[[], Parameters], in_c: bool = False
) -> Adapter:
    """The adapter of that name, under the supervisor unless it is one end of the scale; compiled where it can be."""
    adapter = make(name, robot, trials, seed=seed, truth=truth)
    if name in UNSUPERVISED:
        return adapter
    guarded = Supervisor(adapter, SETTINGS)
    return compiled(guarded) if in_c else guarded


def check_adapters(names: Iterable[str]) -> None:
    """Refuse names that are not on board, and no names at all."""
    found = list(names)
    if not found:
        raise RetorqueError("name at least one adapter after --adapters")
    for name in found:
        if name not in ADAPTERS:
            raise unknown("adapter", name, ADAPTERS)


def halves(trials: int) -> list[slice]:
    """Two halves, whatever the number of workers, so that results do not depend on it."""
    if trials < 8:
        return [slice(0, trials)]
    half = trials // 2
    return [slice(0, half), slice(half, trials)]
