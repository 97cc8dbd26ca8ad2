"""How a command ends: what it could not deliver is an error, what it could not do is one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retorque.cli.main import COMMANDS, EXTRAS, main
from retorque.cli.verb import Verb, VerbGroup
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole
from retorque.work.outcome import Outcome

Ending = Callable[[Callable[[object], object]], int]


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Ending:
    """The exit code of a command that does what it is told to."""

    def run(does: Callable[[object], object]) -> int:
        monkeypatch.setattr("retorque.cli.robots.robots", does)
        return main(["robots"])

    return run


def raising(error: BaseException) -> Callable[[object], object]:
    def command(_: object) -> object:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    (
        (RetorqueError("no such arm; name another"), 2, "no such arm; name another"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "fewer --trials"),
        (PermissionError(13, "Permission denied", "/etc/a"), 2, "'/etc/a': Permission denied"),
        (OSError("the bus is gone"), 2, "the bus is gone"),
        (ModuleNotFoundError("", name="h5py.h5f"), 2, "pip install 'retorque[record]'"),
    ),
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_stops_a_command_is_one_sentence(
    error: BaseException, code: int, said: str, ending: Ending, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(raising(error)) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("retorque: ") and err.count("\n") == 1 and said in err


def test_a_module_that_no_extra_brings_is_our_own_mistake(ending: Ending) -> None:
    with pytest.raises(ModuleNotFoundError):
        ending(raising(ModuleNotFoundError("", name="retorque.nowhere")))


def test_every_extra_that_is_named_exists() -> None:
    import tomllib

    root = Path(__file__).resolve().parents[2]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(declared)


def shown(*texts: str, code: int = 0, files: tuple[Path, ...] = ()) -> Callable[[object], Outcome]:
    """A command that shows texts, writes files and ends with a code."""

    def command(_: object) -> Outcome:
        outcome = Outcome(code=code)
        for text in texts:
            outcome.show(text)
        for file in files:
            outcome.later("kept", lambda file=file: write_whole(file, "x"))
        return outcome

    return command


def test_a_doubt_is_the_exit_code_unless_something_worse_happens(
    ending: Ending, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(shown("found", code=3)) == 3
    assert ending(shown("found", code=3, files=(tmp_path / "a",))) == 3
    assert ending(shown("found", code=3, files=(Path("/dev/full"),))) == 2
    out, err = capsys.readouterr()
    assert out.count("found") == 3 and f"kept: {tmp_path / 'a'}" in err and "No space left" in err


@pytest.mark.parametrize(
    ("result", "out", "err"),
    ((None, "", ""), ("a table [bold]", "a table", ""), (Path("somewhere"), "", "written: somewhere\n")),
    ids=("nothing", "text", "path"),
)
def test_whatever_a_command_returns_is_told_once(
    result: object, out: str, err: str, ending: Ending, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(lambda _: result) == 0
    told = capsys.readouterr()
    assert told.out.strip() == out and told.err == err


CLOSED = """
import sys, retorque.cli.main as cli, retorque.cli.robots as verb
from retorque.work.files import write_whole
from retorque.work.outcome import Outcome
outcome = Outcome(code=int(sys.argv[1]))
outcome.show("found")
for path in sys.argv[2:]:
    outcome.later("kept", lambda path=path: write_whole(path, "x"))
verb.robots = lambda settings: outcome
sys.exit(cli.main(["robots"]))
"""


@pytest.mark.parametrize(
    ("code", "files", "ends"),
    (
        ("0", (), 2),  # the table was the work, and nobody has it
        ("3", (), 2),
        ("0", ("a",), 0),  # the work is in its file
        ("3", ("a",), 3),
        ("0", ("/dev/full",), 2),
        ("0", ("/dev/full", "a"), 2),
    ),
)
def test_a_closed_output_costs_what_only_it_would_have_shown(
    code: str, files: tuple[str, ...], ends: int, tmp_path: Path
) -> None:
    line = ["sh", "-c", '"$0" -c "$@" >&-', sys.executable, CLOSED, code, *files]
    done = subprocess.run(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == ends, done.stderr
    assert done.stderr.startswith("retorque: standard output is closed") and "Traceback" not in done.stderr
    assert (tmp_path / "a").exists() == ("a" in files)


@pytest.mark.parametrize("arguments", ("robots", "--version", "--help", "bench --help", "robots --help"))
def test_a_closed_output_is_refused_by_what_only_prints(arguments: str) -> None:
    line = ["sh", "-c", f'"$0" -m retorque {arguments} >&-', sys.executable]
    done = subprocess.run(line, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"retorque {version('retorque')}\n"


@pytest.mark.parametrize("group", [name for name, entry in COMMANDS.items() if isinstance(entry, VerbGroup)])
def test_a_group_without_a_name_shows_its_names_and_fails(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry = COMMANDS[group]
    assert isinstance(entry, VerbGroup)
    assert main([group]) == 2
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in entry.commands) and f"usage: retorque {group} NAME" in text
    assert main([group, "nothing-like-it"]) == 2
    assert f"unknown {group} 'nothing-like-it'" in capsys.readouterr().err


def test_summaries_are_one_line_and_none_is_used_twice() -> None:
    verbs = [
        verb
        for entry in COMMANDS.values()
        for verb in ([entry] if isinstance(entry, Verb) else entry.commands.values())
    ]
    summaries = [verb.summary for verb in verbs]
    assert len(set(summaries)) == len(summaries)
    assert not [text for text in summaries if "\n" in text or text.endswith(".") or len(text) > 110]
