"""How a command ends: with what is to be shown, and the files to be written once that has been shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


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
    """What was found. Files come last, so that a full disk takes nothing from the reader."""

    shown: list[Shown] = field(default_factory=list)
    files: list[ToWrite] = field(default_factory=list)

    def show(self, what: Any, style: str = "", markup: bool = True) -> None:
        """Add something for the reader."""
        self.shown.append(Shown(what, style, markup))

    def later(self, label: str, write: Callable[[], Path | str]) -> None:
        """Add a file."""
        self.files.append(ToWrite(label, write))

    def write_files(self) -> Sequence[Path | str]:
        """Write all files; where they are."""
        return [file.write() for file in self.files]
