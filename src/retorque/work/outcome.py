"""How a command ends: with files to be written, what is then shown, and a code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from retorque.work.errors import RetorqueError


class Shown(NamedTuple):
    """One thing for the reader."""

    what: Any
    """A text, or a table of `rich`."""
    style: str = ""
    """A style of `rich`."""
    markup: bool = True
    """Whether square brackets in a text are styles."""


class ToWrite(NamedTuple):
    """One file for later."""

    label: str
    """What it is."""
    write: Callable[[], Path | str]
    """Writes it and says where."""


@dataclass
class Outcome:
    """What was found. Files are written before anything is printed, and a full disk takes nothing from the reader."""

    shown: list[Shown] = field(default_factory=list)
    files: list[ToWrite] = field(default_factory=list)
    code: int = 0
    """Exit code of the command, where nothing worse happens."""

    def show(self, what: Any, style: str = "", markup: bool = True) -> None:
        """Add something for the reader."""
        self.shown.append(Shown(what, style, markup))

    def later(self, label: str, write: Callable[[], Path | str]) -> None:
        """Add a file."""
        self.files.append(ToWrite(label, write))

    def write_files(self) -> list[tuple[str, Path | str | RetorqueError]]:
        """Write one file after the other: what each is, and where it lies, or why it could not be written."""
        done: list[tuple[str, Path | str | RetorqueError]] = []
        for label, write in self.files:
            try:
                done.append((label, write()))
            except RetorqueError as error:  # the others may still find room
                done.append((label, error))
        return done
