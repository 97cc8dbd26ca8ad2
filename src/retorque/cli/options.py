"""Options: what was typed, as a settings dataclass; what cannot be read is refused in one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from typing import Any

import tyro

from retorque.cli.verb import Verb
from retorque.work.errors import RetorqueError, unknown


def parse(name: str, command: Verb, settings: type, arguments: list[str]) -> Any:
    """The settings that the arguments ask for; what tyro would say in a box becomes one sentence."""
    check_options(name, settings, arguments)
    complaint = io.StringIO()
    description = [
        f"{command.summary[0].upper()}{command.summary[1:]}.",
        *(f"example: {example}" for example in (command.example, *command.more)),
    ]
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                settings,
                prog=name,
                description="\n\n".join(description),
                args=_with_values(arguments, command.bare),
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise RetorqueError(f"{_sentence(complaint.getvalue())}; see: {name} --help") from None


def check_options(name: str, settings: type, arguments: list[str]) -> None:
    """Refuse an option that does not exist with the nearest one that does."""
    fields = [field for field in dataclasses.fields(settings) if "Positional" not in str(field.type)]
    options = {_option(field) for field in fields} | {"--help"}
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if argument.startswith("--") and option not in options and "." not in option:
            raise unknown(f"option of {name}", option, options)


def _option(field: dataclasses.Field[Any]) -> str:
    """How a field is called on the command line; what is on by default can only be switched off."""
    return f"--{'no-' if field.default is True else ''}{field.name.replace('_', '-')}"


def _with_values(arguments: list[str], bare: dict[str, str]) -> list[str]:
    """The arguments, with its value added to each option that stands bare."""
    filled = []
    for index, argument in enumerate(arguments):
        filled.append(argument)
        value = bare.get(argument.replace("_", "-"))
        following = arguments[index + 1 : index + 2]
        if value is not None and (not following or following[0].startswith("--")):
            filled.append(value)
    return filled


def _sentence(box: str) -> str:
    """The first statement in a framed message."""
    lines = [line.strip("│ \n") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    said = []
    for line in lines:
        if line.startswith("─"):
            break
        said.append(line)
    return " ".join(said).strip().rstrip(".") or "the options cannot be read"
