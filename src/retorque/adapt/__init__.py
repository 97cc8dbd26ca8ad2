"""The adapters, by name."""

from __future__ import annotations

from collections.abc import Callable

from retorque.adapt.adapter import Adapter
from retorque.adapt.direct import Direct
from retorque.adapt.oracle import Oracle
from retorque.errors import RetorqueError, unknown
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot

ADAPTERS: dict[str, str] = {
    "direct": "no correction",
    "oracle": "the target's true parameters inverted: the floor (simulation only)",
}
"""Every adapter on board, and what it is."""


def make(
    name: str,
    robot: Robot,
    trials: int = 1,
    *,
    timestep: float = 1e-3,
    seed: int = 0,
    truth: Callable[[], Parameters] | None = None,
) -> Adapter:
    """The adapter of that name for a robot.

    Args:
        name: one of `ADAPTERS`.
        robot: the ideal robot.
        trials: how many robots it serves at once.
        timestep: control period [s].
        seed: of whatever the adapter draws at random.
        truth: the target's parameters, for the oracle only.
    """
    if name not in ADAPTERS:
        raise unknown("adapter", name, ADAPTERS)
    if name == "oracle":
        if truth is None:
            raise RetorqueError("the oracle adapter needs a simulated target's true parameters")
        return Oracle(robot, trials, truth, timestep)
    return Direct(robot, trials, timestep)


__all__ = ["ADAPTERS", "Adapter", "make"]
