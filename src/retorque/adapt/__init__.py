"""The adapters, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retorque.loop.adapter import Adapter
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError, unknown

ADAPTERS: dict[str, tuple[str, str]] = {
    "direct": ("retorque.adapt.direct:Direct", "no correction"),
    "oracle": ("retorque.adapt.oracle:Oracle", "the target's true parameters inverted: the floor (simulation only)"),
    "particle": (
        "retorque.adapt.particle.adapter:Particle",
        "the TAM paper's particle filter over physical parameters",
    ),
    "particle-sharp": ("retorque.adapt.particle.adapter:SharpParticle", "the same with a sharper likelihood"),
    "recursive": ("retorque.adapt.recursive.adapter:Recursive", "learns inertias, friction and drive while it moves"),
    "recursive-contact": (
        "retorque.adapt.recursive.contact:RecursiveContact",
        "the same, and knows contact from mismatch",
    ),
    "tam": (
        "retorque.adapt.tam.adapter:TamAdapter",
        "the learned torque adaptation module, one set of weights for all arms",
    ),
    "tam-ft": ("retorque.adapt.tam.adapter:FineTuned", "the same, fine-tuned for the robot"),
    "tam-recursive": (
        "retorque.adapt.tam_recursive.adapter:TamRecursive",
        "recursive-contact, and a network for what linear physics cannot say",
    ),
    "tam-no-residual": ("retorque.adapt.tam.adapter:NoResidual", "TAM without the physics residual (ablation)"),
    "tam-short-window": ("retorque.adapt.tam.adapter:ShortWindow", "TAM without its history encoder (ablation)"),
    "tam-privileged": (
        "retorque.adapt.tam.adapter:PrivilegedLatent",
        "TAM with a latent of true parameters (baseline)",
    ),
    "physpred": ("retorque.adapt.tam.physpred:PhysPred", "predicts the parameters from history and inverts them"),
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
