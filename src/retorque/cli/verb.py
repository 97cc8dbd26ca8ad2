"""One verb of the command line: what it is called, and where its settings and its function are."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One verb; what it needs is imported only once it is chosen."""

    summary: str
    """One line of help."""
    example: str
    """A line that can be typed as it stands."""
    module: str
    """Where settings and function are, below `retorque`."""
    settings: str = "Settings"
    """The dataclass that the options are made from."""
    function: str = "run"
    """Takes the settings; returns an `Outcome`, a report with `table` and `save`, something to print, or a path."""
    bare: dict[str, str] = field(default_factory=dict)
    """What an option means that is given without its value."""
    more: tuple[str, ...] = ()
    """Further examples, for the command's own help."""


@dataclass(frozen=True, kw_only=True)
class VerbGroup:
    """Verbs under one word."""

    summary: str
    """One line of help."""
    commands: dict[str, Verb]
    """By name, in the order of the help."""
