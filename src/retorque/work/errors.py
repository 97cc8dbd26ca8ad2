"""The exception every part of Retorque raises when a user's input cannot be used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RetorqueError(Exception):
    """Bad input: the message is one sentence that says what is wrong and what to do; the command line exits with 2."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> RetorqueError:
    """The error for a name that is not on board, with the nearest name and the whole list."""
    names = sorted(choices)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" did you mean '{near[0]}'?" if near else ""
    return RetorqueError(f"unknown {kind} '{name}';{hint} on board: {', '.join(names)}")
