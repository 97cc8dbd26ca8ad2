"""The command line: one thin command for each verb, its options made from a settings dataclass.

What a command needs is imported only once it is chosen, so that help and typing errors answer at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from retorque.work.errors import RetorqueError, unknown

# Matrices here are small: several threads on one of them cost more than they give. Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """One verb, and where its settings and its function are."""

    summary: str
    """One line of help."""
    example: str
    """A line that can be typed as it stands."""
    module: str
    """Where settings and function are, below `retorque`."""
    settings: str = "Settings"
    """The dataclass that the options are made from."""
    function: str = "run"
    """Takes the settings; returns a report or a table to print, the file that it wrote, an exit code, or nothing."""
    bare: dict[str, str] = dataclasses.field(default_factory=dict)
    """What an option means that is given without its value."""
    more: tuple[str, ...] = ()
    """Further examples, for the command's own help."""

    @property
    def here(self) -> bool:
        """Whether this installation has the command."""
        return (Path(__file__).parents[1] / f"{self.module.replace('.', '/')}.py").is_file()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RobotsSettings:
    """`retorque robots` takes no options."""


BENCHES = {
    "tracking": Command(
        summary="joint tracking with hidden parameters, every adapter on the same targets (TAM, Table 3)",
        example="retorque bench tracking --robots panda z1 --adapters direct oracle --trials 100 --json tracking.json",
        module="bench.tracking",
        bare={"--payload-step": "1.0"},
    ),
    "source-to-osc": Command(
        summary="what is learnt under joint impedance, used in operational space (TAM, Table 2)",
        example="retorque bench source-to-osc --adapters direct recursive --trials 100 --json osc.json",
        module="bench.source_to_osc",
    ),
    "tam-bottleneck": Command(
        summary="how wide the latent must be (TAM, Table F.2)",
        example="retorque bench tam-bottleneck --json bottleneck.json",
        module="bench.tam_bottleneck",
    ),
    "identification": Command(
        summary="rigid-body identification, SDP against gradient methods (hybrid models, Table I)",
        example="retorque bench identification --scale 0.1 --json identification.json",
        module="bench.identification",
    ),
    "inverse-dynamics": Command(
        summary="inverse-dynamics models, end to end and in two steps (hybrid models, Table II)",
        example="retorque bench inverse-dynamics --scale 0.1 --json inverse-dynamics.json",
        module="bench.inverse_dynamics",
    ),
    "impedance-tracking": Command(
        summary="the models as feed-forward at soft, medium and stiff gains (hybrid models, Table III)",
        example="retorque bench impedance-tracking --scale 0.1 --json impedance-tracking.json",
        module="bench.impedance_tracking",
    ),
    "real-logs": Command(
        summary="identification from recordings of real robots",
        example="retorque bench real-logs --json real-logs.json",
        module="bench.real_logs",
    ),
    "speed": Command(
        summary="time of each hot path, and simulation steps a second",
        example="retorque bench speed --json speed.json",
        module="bench.speed",
    ),
}

COMMANDS: dict[str, Command | dict[str, Command]] = {
    "demo": Command(
        summary="the main job in a minute: hidden payload and friction, every adapter, table + plot + page",
        example="retorque demo",
        module="bench.demo.demo",
    ),
    "robots": Command(
        summary="what is on board: degrees of freedom, limits, source of the numbers",
        example="retorque robots",
        module="cli.main",
        settings="RobotsSettings",
        function="robots",
    ),
    "bench": BENCHES,
    "identify": Command(
        summary="a physically consistent model from logs, with errors and what could not be identified",
        example="retorque identify log.csv --robot panda --json model.json",
        module="identify.commands",
        settings="IdentifySettings",
        function="identify",
    ),
    "payload": Command(
        summary="a payload's mass, centre and inertia from an empty and a loaded log",
        example="retorque payload empty.csv loaded.csv --robot ur10e",
        module="identify.commands",
        settings="PayloadSettings",
        function="payload",
    ),
    "excite": Command(
        summary="a motion that makes a robot's parameters show, within its limits",
        example="retorque excite --robot panda --time 20 --harmonics 5",
        module="identify.excite.excite_command",
        settings="ExciteSettings",
        function="excite",
    ),
    "train": {
        "tam": Command(
            summary="data, pretraining and fine-tuning of the torque adaptation module; resumes where it stopped",
            example="retorque train tam --robots panda --preset small --hours 2 --out tam-panda",
            module="adapt.tam.training.train",
            settings="TamTraining",
            function="train",
            more=(
                "retorque train tam --robots z1 --finetune tam/weights.safetensors --hours 0.2 --out tam-z1",
                "retorque train tam --cluster auto --workers 16 --out tam",
                "torchrun --standalone --nproc-per-node 2 -m retorque train tam --out tam",
            ),
        ),
        "tam-recursive": Command(
            summary="the network that reads what the recursive estimator leaves unexplained; resumes where it stopped",
            example="retorque train tam-recursive --workers 2 --out tam-recursive",
            module="adapt.tam_recursive.training.train",
            settings="ResidualTraining",
            function="train",
        ),
    },
}
"""Every verb, in the order of the help; those that this installation lacks are not shown."""

GROUPS = {"bench": "a published table, ours beside theirs, with a 95 % interval", "train": "make weights"}

EXTRAS = {
    "torch": "train",
    "cvxpy": "identify",
    "clarabel": "identify",
    "pyarrow": "identify",
    "websockets": "studio",
    "ray": "cluster",
    "mujoco_warp": "gpu",
    "mujoco_menagerie": "menagerie",
}
"""The extra that brings a module."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 on bad input, or 130 when interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except RetorqueError as error:
        print(f"retorque: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        print(f"retorque: this needs {error.name}; install it with: pip install 'retorque[{extra}]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("retorque: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def robots(settings: RobotsSettings) -> Any:
    """The robots on board, as a table."""
    import numpy as np
    from rich.table import Table

    from retorque.robots import load, names

    def span(values: np.ndarray, unit: str) -> str:
        known = values[np.isfinite(values)]
        return f"{known.min():.3g} .. {known.max():.3g} {unit}" if len(known) else "unknown"

    table = Table("name", "robot", "joints", "torque", "velocity", "source", title="Robots on board")
    for name in names():
        robot = load(name)
        joints = f"{robot.n} + free base" if robot.floating else str(robot.n)
        torque, velocity = span(robot.torque_limit, "N·m"), span(robot.velocity_limit, "rad/s")
        table.add_row(name, robot.title, joints, torque, velocity, robot.source)
    return table


def _dispatch(arguments: list[str]) -> int:
    commands: dict[str, Any] = {name: entry for name, entry in COMMANDS.items() if _here(entry)}
    words = ["retorque"]
    kind = "command"
    while True:
        if not arguments or arguments[0] in ("-h", "--help"):
            _print_help(words, commands)
            return 0 if arguments else 2
        word = arguments.pop(0)
        if word == "--version" and len(words) == 1:
            print(f"retorque {_version()}")
            return 0
        if word not in commands:
            raise unknown(kind, word, commands)
        words.append(word)
        kind = word if word in GROUPS else kind
        entry = commands[word]
        if isinstance(entry, Command):
            return _run(" ".join(words), entry, arguments)
        commands = {name: command for name, command in entry.items() if command.here}


def _here(entry: Command | dict[str, Command]) -> bool:
    return entry.here if isinstance(entry, Command) else any(command.here for command in entry.values())


def _print_help(words: list[str], commands: dict[str, Command | dict[str, Command]]) -> None:
    print(f"usage: {' '.join(words)} {'NAME' if len(words) > 1 else 'COMMAND'} [OPTIONS]\n")
    print(GROUPS[words[-1]] if len(words) > 1 else "Retorque makes a robot behave like its model.")
    print()
    width = max(len(name) for name in commands)
    for name, entry in commands.items():
        print(f"  {name:<{width}}  {entry.summary if isinstance(entry, Command) else GROUPS[name]}")
    first = next(iter(commands.values()))
    example = first.example if isinstance(first, Command) else "retorque demo"
    print(f"\nexample: {example}\nhelp on one of them: {' '.join(words)} {next(iter(commands))} --help")


def _run(name: str, command: Command, arguments: list[str]) -> int:
    with _interrupts_held():
        module = import_module(f"retorque.{command.module}")
    settings = _parse(name, command, getattr(module, command.settings), arguments)
    file = getattr(settings, "json", None)
    if file is not None:
        _check_writable(Path(file))
    result = getattr(module, command.function)(settings)
    if result is None or isinstance(result, int):
        return result or 0
    if isinstance(result, Path):
        print(f"written: {result}", file=sys.stderr)
        return 0
    from rich.console import Console

    # A pipe or a file has no width: wide enough that no row is broken.
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(result.table() if hasattr(result, "table") else result)
    if file is not None and hasattr(result, "save"):
        result.save(file)
        print(f"written: {file}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let an interrupt wait for the end: a library that is interrupted while it loads may swallow it."""
    unheard = threading.current_thread() is not threading.main_thread()
    if unheard or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, or someone else's
        yield
        return
    heard = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: heard.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard.is_set():
        raise KeyboardInterrupt


def _parse(name: str, command: Command, settings: type, arguments: list[str]) -> Any:
    """The settings that the arguments ask for; what tyro would say in a box becomes one sentence."""
    import tyro

    _check_options(name, settings, arguments)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                settings,
                prog=name,
                description="\n\n".join(
                    (
                        f"{command.summary[0].upper()}{command.summary[1:]}.",
                        f"example: {command.example}",
                        *(f"example: {example}" for example in command.more),
                    )
                ),
                args=_with_values(arguments, command.bare),
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise RetorqueError(f"{_sentence(complaint.getvalue())}; see: {name} --help") from None


def _check_options(name: str, settings: type, arguments: list[str]) -> None:
    """Refuse an option that does not exist with the nearest one that does."""
    fields = [field for field in dataclasses.fields(settings) if "Positional" not in str(field.type)]
    options = {f"--{field.name.replace('_', '-')}" for field in fields} | {"--help"}
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if argument.startswith("--") and option not in options and "." not in option:
            raise unknown(f"option of {name}", option, options)


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


def _check_writable(file: Path) -> None:
    """Refuse, before the long work, a result file that could not be written after it; nothing is left behind."""
    missing = [folder for folder in file.parents if not folder.exists()]
    try:
        if file.is_dir():
            raise IsADirectoryError("it is a folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise RetorqueError(f"cannot write '{file}' ({reason}); give --json a file in a folder you can write") from None
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _version() -> str:
    from retorque import __version__

    return __version__


if __name__ == "__main__":
    sys.exit(main())
