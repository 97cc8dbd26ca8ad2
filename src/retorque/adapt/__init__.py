"""The adapters, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retorque.adapt.adapter import Adapter
from retorque.errors import RetorqueError, unknown
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot

ADAPTERS: dict[str, tuple[str, str]] = {
    "direct": ("retorque.adapt.direct:Direct", "no correction"),
    "oracle": ("retorque.adapt.oracle:Oracle", "the target's true parameters inverted: the floor (simulation only)"),
    "particle": ("retorque.adapt.particle:Particle", "the TAM paper's particle filter over physical parameters"),
    "particle-sharp": ("retorque.adapt.particle:SharpParticle", "the same with a sharper likelihood"),
    "recursive": ("retorque.adapt.recursive.adapter:Recursive", "learns inertias, friction and drive while it moves"),
    "recursive-contact": (
        "retorque.adapt.recursive.contact:RecursiveContact",
        "the same, and knows contact from mismatch",
    ),
}
"""Every adapter on board: where its class is, and what it does."""


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
    module, _, cls = ADAPTERS[name][0].partition(":")
    arguments: dict[str, Any] = {"timestep": timestep, "seed": seed}
    if name == "oracle":
        if truth is None:
            raise RetorqueError("the oracle adapter needs a simulated target's true parameters")
        arguments["truth"] = truth
    return getattr(import_module(module), cls)(robot, trials, **arguments)


__all__ = ["ADAPTERS", "Adapter", "make"]
