"""The command line: finds the verb, makes its options from a settings dataclass, prints, writes, and ends in words.

What a command needs is imported only once it is chosen, so that help and typing errors answer at once.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retorque.cli.bench import BENCHES
from retorque.cli.comply import COMPLY
from retorque.cli.demo import DEMO
from retorque.cli.excite import EXCITE
from retorque.cli.export import EXPORT
from retorque.cli.hardware.calibrate import CALIBRATE
from retorque.cli.hardware.fake import FAKES
from retorque.cli.hardware.on_robot import DRIVE, LEARNER, RECORD, REPLAY
from retorque.cli.identify import IDENTIFY
from retorque.cli.mpc import MPC
from retorque.cli.payload import PAYLOAD
from retorque.cli.robots import ROBOTS
from retorque.cli.task import TASKS
from retorque.cli.train import TRAININGS
from retorque.cli.verb import Verb, VerbGroup
from retorque.work.errors import RetorqueError, unknown
from retorque.work.interrupts import interrupts_held

if TYPE_CHECKING:
    from retorque.work.outcome import Outcome

# Matrices here are small: several threads on one of them cost more than they give. Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMMANDS: dict[str, Verb | VerbGroup] = {
    "demo": DEMO,
    "robots": ROBOTS,
    "bench": BENCHES,
    "identify": IDENTIFY,
    "payload": PAYLOAD,
    "excite": EXCITE,
    "mpc": MPC,
    "train": TRAININGS,
    "drive": DRIVE,
    "record": RECORD,
    "replay": REPLAY,
    "learner": LEARNER,
    "fake": FAKES,
    "task": TASKS,
    "export": EXPORT,
    "comply": COMPLY,
    "calibrate-motor": CALIBRATE,
}
"""Every verb, in the order of the help."""

EXTRAS = {
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "torch": "train",
    "pyarrow": "identify",
    "numba": "compile",
    "gymnasium": "rl",
    "ray": "cluster",
    "mujoco_menagerie": "menagerie",
    "mcap": "record",
    "h5py": "record",
    "rosbags": "record",
    "pylibfranka": "franka",
    "dynamixel_sdk": "dynamixel",
    "rtde_control": "ur",
    "rtde_receive": "ur",
    "cyclonedds": "ros2",
}
"""The extra that brings a module."""

WIDTH = 200
"""Characters in a line where the output is a pipe or a file: wide enough that no row is broken."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 on bad input, 3 where a result is doubted, or 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_what_is_closed()
    try:
        return _dispatch(arguments)
    except RetorqueError as error:
        return _complain(str(error))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        return _complain(f"this needs {error.name}; install it with: pip install 'retorque[{extra}]'")
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except MemoryError:
        return _complain("there is not enough memory for this; ask for less at once (fewer --trials)")
    except OSError as error:
        where = f"'{error.filename}': " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}")


def _complain(sentence: str) -> int:
    with contextlib.suppress(OSError):
        print(f"retorque: {sentence}", file=sys.stderr)
    return 2


def _open_what_is_closed() -> None:
    """Give closed standard streams a place: the next file opened would otherwise take their number."""
    lost = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for the rest of the process)
    if lost:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for the rest of the process)
        _complain("standard output is closed: nothing can be printed; give it a place")


def _dispatch(arguments: list[str]) -> int:
    commands: dict[str, Any] = COMMANDS
    words, kind, summary = ["retorque"], "command", "Retorque makes a robot behave like its model."
    while True:
        if not arguments or arguments[0] in ("-h", "--help"):
            code = _print(_help(words, summary, commands))
            return code if arguments else 2
        word = arguments.pop(0)
        if word == "--version" and len(words) == 1:
            from retorque import __version__

            return _print(f"retorque {__version__}")
        if word not in commands:
            raise unknown(kind, word, commands)
        words.append(word)
        entry = commands[word]
        if isinstance(entry, Verb):
            return _run(" ".join(words), entry, arguments)
        commands, kind, summary = entry.commands, word, entry.summary


def _help(words: list[str], summary: str, commands: dict[str, Verb | VerbGroup]) -> str:
    width = max(len(name) for name in commands)
    lines = [f"usage: {' '.join(words)} {'NAME' if len(words) > 1 else 'COMMAND'} [OPTIONS]", "", summary, ""]
    lines += [f"  {name:<{width}}  {entry.summary}" for name, entry in commands.items()]
    first = next(iter(commands.values()))
    example = first.example if isinstance(first, Verb) else "retorque demo"
    lines += ["", f"example: {example}", f"help on one of them: {' '.join(words)} {next(iter(commands))} --help"]
    return "\n".join(lines)


def _run(name: str, command: Verb, arguments: list[str]) -> int:
    from retorque.cli.options import parse

    with contextlib.suppress(OSError):  # a user's own class, named module:Class, is looked for where we were called
        sys.path.append(os.getcwd())
    with interrupts_held():
        module = import_module(f"retorque.{command.module}")
    try:
        settings = parse(name, command, getattr(module, command.settings), arguments)
    except SystemExit:  # its help was asked for
        if _closed():
            return 2
        raise
    file = getattr(settings, "json", None)
    if file is not None:
        from retorque.work.files import check_file

        check_file(Path(file))
    return _end(_outcome(getattr(module, command.function)(settings), file))


def _outcome(result: Any, file: Path | None) -> Outcome:
    """What a command returned, in one form."""
    from retorque.work.outcome import Outcome

    if isinstance(result, Outcome):
        return result
    outcome = Outcome()
    if isinstance(result, Path):
        outcome.later("written", lambda: result)
    elif result is not None:
        outcome.show(result.table() if hasattr(result, "table") else result)
        if file is not None and hasattr(result, "save"):
            outcome.later("written", lambda: result.save(file))
    return outcome


def _end(outcome: Outcome) -> int:
    """Write the files, then show what was found; whatever fails takes nothing else with it."""
    from rich.console import Console

    files = outcome.write_files()
    terminal = sys.stdout.isatty()
    text = io.StringIO()  # printed at once: a table that breaks off half-way is of no use
    width = shutil.get_terminal_size().columns if terminal else WIDTH
    console = Console(file=text, force_terminal=terminal, width=width)
    for what, style, markup in outcome.shown:
        console.print(what, style=style or None, markup=markup)
    code = (_print(text.getvalue().rstrip("\n")) if outcome.shown else 0) or outcome.code
    if _closed() and any(not isinstance(written, RetorqueError) for _, written in files):
        code = outcome.code  # the work has reached its file: nothing is lost
    for label, written in files:
        if isinstance(written, RetorqueError):
            code = _complain(str(written))
            continue
        with contextlib.suppress(OSError):
            print(f"{label}: {written}", file=sys.stderr)
    return code


def _closed() -> bool:
    """Whether standard output was closed when we were called, so that what is printed goes nowhere."""
    return getattr(sys.stdout, "name", "") == os.devnull


def _print(text: str) -> int:
    """Print to standard output; a reader that has left (head, less) is no error, a closed one or a full disk is."""
    if _closed():
        return 2
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _forget_output()
    except OSError as error:
        _forget_output()
        return _complain(f"cannot print the result ({error.strerror}); give standard output another place")
    return 0


def _forget_output() -> None:
    """Send what is still to be printed nowhere, so that the end of the process does not fail on it."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


if __name__ == "__main__":
    sys.exit(main())
