"""Adapters as the benches run them: chosen by name, with a user's own class, weights and settings, supervised."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from retorque.adapt import Adapter, adapter_class, make, settings_of, takes_weights
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.runtime.compiled.make import compiled
from retorque.work.errors import RetorqueError, unknown
from retorque.work.files import is_file
from retorque.work.jobs import KeptJobSettings

UNSUPERVISED = ("direct", "oracle")
"""The two ends of the scale run bare."""

SETTINGS = SupervisorSettings(enable_ramp=0.0)
"""As shipped, but for the ramp: the published protocol counts the cold start from its first tick."""


@dataclass(frozen=True)
class AdapterChoice:
    """One adapter of a bench."""

    name: str
    """On board, or `module:Class`."""
    weights: str = ""
    """A file instead of the weights on board."""
    settings: tuple[tuple[str, str], ...] = ()
    """Names with values, as they were typed."""
    compiled: bool = False
    """In the compiled core, where there is a compiler and a port of it."""

    def make(
        self, robot: Robot, trials: int, seed: int, truth: Callable[[], Parameters], timestep: float = 1e-3
    ) -> Adapter:
        """The adapter as chosen, bare."""
        return make(
            self.name,
            robot,
            trials,
            timestep=timestep,
            seed=seed,
            truth=truth,
            weights=self.weights or None,
            settings=dict(self.settings),
        )


@dataclass(frozen=True, kw_only=True)
class AdapterSettings(KeptJobSettings):
    """Settings of every bench that compares adapters."""

    adapters: tuple[str, ...] = ("direct", "recursive")
    """Adapters to compare: on board, or your own as MODULE:CLASS (looked for in this folder too)."""
    weights: tuple[str, ...] = ()
    """Weights of your own: FILE, or ADAPTER=FILE where several of the adapters have weights."""
    adapter_settings: tuple[str, ...] = ()
    """Settings of adapters, each as ADAPTER.NAME=VALUE."""
    compiled: bool = False
    """Run adapters in the compiled core where they can be: the same figures in a fraction of the time."""

    def choices(self) -> tuple[AdapterChoice, ...]:
        """The adapters with what was given for each; what does not fit is refused."""
        check_adapters(self.adapters)
        files = dict(_whose_weights(text, self.adapters) for text in self.weights)
        values: dict[str, list[tuple[str, str]]] = {name: [] for name in self.adapters}
        for text in self.adapter_settings:
            name, setting, value = _whose_setting(text, self.adapters)
            values[name].append((setting, value))
        for name, given in values.items():
            if given:
                settings_of(name, dict(given))
        return tuple(
            AdapterChoice(name, files.get(name, ""), tuple(values[name]), self.compiled) for name in self.adapters
        )


def supervised(
    adapter: str | AdapterChoice, robot: Robot, trials: int, seed: int, truth: Callable[[], Parameters]
) -> Adapter:
    """The adapter as chosen, under the supervisor unless it is one end of the scale."""
    chosen = AdapterChoice(adapter) if isinstance(adapter, str) else adapter
    made = chosen.make(robot, trials, seed, truth)
    if chosen.name in UNSUPERVISED:
        return made
    guarded = Supervisor(made, SETTINGS)
    return compiled(guarded) if chosen.compiled else guarded


def check_adapters(names: Iterable[str]) -> None:
    """Refuse names that are neither on board nor a class of the user's, and no names at all."""
    found = list(names)
    if not found:
        raise RetorqueError("name at least one adapter after --adapters")
    for name in found:
        adapter_class(name)
    twice = {name for name in found if found.count(name) > 1}
    if twice:
        raise RetorqueError(f"--adapters names '{min(twice)}' twice; name each once")


def halves(trials: int) -> list[slice]:
    """Two halves, whatever the number of workers, so that results do not depend on it."""
    if trials < 8:
        return [slice(0, trials)]
    half = trials // 2
    return [slice(0, half), slice(half, trials)]


def _whose_weights(text: str, adapters: tuple[str, ...]) -> tuple[str, str]:
    """The adapter that a file of weights is for, and the file."""
    name, equals, file = text.partition("=")
    if not (equals and name in adapters):
        having = [adapter for adapter in adapters if takes_weights(adapter)]
        if len(having) != 1:
            reason = f"{' and '.join(having)} have weights" if having else "no adapter of --adapters has weights"
            raise RetorqueError(f"--weights {text}: {reason}; say whose they are: ADAPTER=FILE")
        name, file = having[0], text
    elif not takes_weights(name):
        raise RetorqueError(f"the adapter '{name}' has no weights; leave them out")
    if not is_file(Path(file)):
        raise RetorqueError(f"there is no file of weights '{file}'; name one that retorque train wrote")
    return name, file


def _whose_setting(text: str, adapters: tuple[str, ...]) -> tuple[str, str, str]:
    """Adapter, setting and value in ADAPTER.NAME=VALUE."""
    where, equals, value = text.partition("=")
    name, dot, setting = where.rpartition(".")
    if not (equals and dot and setting):
        raise RetorqueError(f"--adapter-settings takes ADAPTER.NAME=VALUE, such as recursive.window=0.06, not '{text}'")
    if name not in adapters:
        raise unknown("adapter of --adapters", name, adapters)
    return name, setting, value
