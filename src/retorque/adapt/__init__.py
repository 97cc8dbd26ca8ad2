"""The adapters, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.single import Single
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError, unknown

ADAPTERS: dict[str, tuple[str, str]] = {
    "default": (
        "retorque.adapt.default.adapter:Default",
        "the one to trust: contact, payload, drive and joint told apart",
    ),
    "direct": ("retorque.adapt.direct:Direct", "no correction"),
    "oracle": ("retorque.adapt.oracle:Oracle", "the target's true parameters inverted: the floor (simulation only)"),
    "identified": (
        "retorque.adapt.identified:Identified",
        "feeds forward what was identified from a log; no learning: wrong as soon as anything changes",
    ),
    "particle": (
        "retorque.adapt.particle.adapter:Particle",
        "the TAM paper's particle filter over physical parameters; takes every touch for a parameter",
    ),
    "particle-sharp": ("retorque.adapt.particle.adapter:SharpParticle", "the same with a sharper likelihood"),
    "recursive": (
        "retorque.adapt.recursive.adapter:Recursive",
        "learns inertias, friction and drive; presses many times too hard against what it touches",
    ),
    "recursive-contact": (
        "retorque.adapt.recursive.recursive_contact:RecursiveContact",
        "the same, and knows short contact; what lasts longer than 1.2 s it presses against too",
    ),
    "observer": (
        "retorque.adapt.rivals.observer:Observer",
        "a momentum disturbance observer fed forward; dangerous where anything touches: it cancels every push",
    ),
    "adaptive": (
        "retorque.adapt.rivals.adaptive:Adaptive",
        "Slotine and Li's adaptive control, composite and projected; dangerous in contact: it takes a push for itself",
    ),
    "integral": (
        "retorque.adapt.rivals.integral:Integral",
        "bounded integral action on the velocity that is lacking; dangerous at a wall: it presses up to its bound",
    ),
    "tam": (
        "retorque.adapt.tam.adapter:TamAdapter",
        "the learned torque adaptation module, for all arms; slow where a payload or a drive changes",
    ),
    "tam-ft": (
        "retorque.adapt.tam.adapter:FineTuned",
        "the same, fine-tuned for the robot; may kick in the first second without a ramp",
    ),
    "tam-recursive": (
        "retorque.adapt.tam_recursive.adapter:TamRecursive",
        "recursive-contact and a network; takes a payload for a push, and lasting touch for its own",
    ),
    "tam-paper": (
        "retorque.adapt.tam.adapter:PaperTam",
        "TAM with the paper's own inputs and loss, a small encoder trained for minutes: for comparison, not for use",
    ),
    "tam-no-etau": ("retorque.adapt.tam.adapter:NoTorqueResidual", "TAM without the physics residual (ablation)"),
    "tam-no-residual": (
        "retorque.adapt.tam.adapter:NoResidual",
        "TAM without the physics residual, accelerations and loads (ablation)",
    ),
    "tam-short-window": ("retorque.adapt.tam.adapter:ShortWindow", "TAM without its history encoder (ablation)"),
    "tam-privileged": (
        "retorque.adapt.tam.adapter:PrivilegedLatent",
        "TAM with a latent of true parameters (baseline)",
    ),
    "physpred": ("retorque.adapt.tam.physpred:PhysPred", "predicts the parameters from history and inverts them"),
}
"""Every adapter on board: where its class is, what it does, and when it is dangerous."""


def adapter_class(name: str) -> type[Adapter]:
    """The class of an adapter on board, or a user's own named `module:Class`."""
    where = ADAPTERS[name][0] if name in ADAPTERS else name
    module, colon, attribute = where.partition(":")
    if not colon:
        raise unknown("adapter", name, ADAPTERS)
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # a user's module may fail in any way
        if name in ADAPTERS:
            raise
        reason = f"{type(error).__name__}: {error}"
        raise RetorqueError(f"cannot load the adapter '{name}' ({reason}); name it as module:Class") from error
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise RetorqueError(f"'{name}' is not an adapter; derive its class from retorque.Adapter")
    return found


def make(
    name: str,
    robot: Robot,
    trials: int | tuple[()] = (),
    *,
    timestep: float = 1e-3,
    seed: int = 0,
    truth: Callable[[], Parameters] | None = None,
    weights: str | Path | None = None,
    settings: object | Mapping[str, Any] | None = None,
) -> Adapter:
    """The adapter of that name for a robot.

    Args:
        name: one of `ADAPTERS`, or a user's own class as `module:Class`.
        robot: the ideal robot.
        trials: how many robots it serves at once, with arrays (trials, n); (): one robot, with arrays (n,).
        timestep: control period [s].
        seed: of whatever the adapter draws at random.
        truth: the target's parameters, for the oracle only.
        weights: a file of weights instead of the ones on board, where the adapter has any.
        settings: its settings, as its own dataclass or as names with values.
    """
    found = adapter_class(name)
    takes = _arguments(found)
    given: dict[str, Any] = {"timestep": timestep, "seed": seed}
    if "truth" in takes:
        if truth is None:
            raise RetorqueError(f"the adapter '{name}' needs a simulated target's true parameters")
        given["truth"] = truth
    if weights is not None:
        if "weights" not in takes:
            raise RetorqueError(f"the adapter '{name}' has no weights; leave them out")
        given["weights"] = Path(weights)
    if settings is not None and settings != {}:
        if "settings" not in takes:
            raise RetorqueError(f"the adapter '{name}' has no settings; leave them out")
        given["settings"] = settings_of(name, settings) if isinstance(settings, Mapping) else settings
    adapter = found(robot, trials or 1, **given) if weights is None else _tried(found, robot, trials or 1, given)
    return adapter if trials != () else Single(adapter)


def _tried(found: type[Adapter], robot: Robot, trials: int, given: dict[str, Any]) -> Adapter:
    """An adapter with weights of a user's, which must make one tick before they are trusted with a robot."""
    path, still = given["weights"], np.zeros((trials, robot.n))
    try:
        adapter = found(robot, trials, **given)
        state = State(0.0, robot.home + still, still, still)
        with np.errstate(all="ignore"):
            adapter.observe(state)
            belief = adapter.learn()
            if belief is not None:
                adapter.adopt(belief)
            torque = adapter.correct(state, still)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise RetorqueError(f"'{path}' does not hold its header's network ({error}); train again") from error
    if not np.all(np.isfinite(torque)):
        raise RetorqueError(f"the weights in '{path}' give torques that are not finite; train again")
    adapter.reset()
    return adapter


def takes_weights(name: str) -> bool:
    """Whether an adapter has weights that a user may replace."""
    return "weights" in _arguments(adapter_class(name))


def settings_of(name: str, values: Mapping[str, Any]) -> object:
    """An adapter's settings of names with values; texts, as a command line has them, become numbers."""
    settings = adapter_class(name).settings_type
    if settings is None or not is_dataclass(settings):
        raise RetorqueError(f"the adapter '{name}' has no settings; leave them out")
    kinds = {field.name: _kind(field.type) for field in fields(settings)}
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in kinds:
            raise unknown(f"setting of '{name}'", key, kinds)
        try:
            found[key] = _number(value, kinds[key]) if isinstance(value, str) else value
        except ValueError:
            raise RetorqueError(f"the setting '{key}' of '{name}' is a {kinds[key]}, not '{value}'") from None
    return settings(**found)


def _arguments(adapter: type[Adapter]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(adapter.__init__).parameters


def _kind(annotation: object) -> str:
    """The name of a field's type, however it was written down."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _number(text: str, kind: str) -> object:
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    return int(text) if kind == "int" else float(text) if kind == "float" else text


__all__ = ["ADAPTERS", "Adapter", "adapter_class", "make", "settings_of", "takes_weights"]
