"""The command line itself: help, names, options, exit codes."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from waiting import within

from retorque.cli.main import COMMANDS, main
from retorque.cli.options import check_options
from retorque.cli.verb import Verb

EVERY = [
    (words, verb)
    for word, entry in COMMANDS.items()
    for words, verb in (
        [([word], entry)] if isinstance(entry, Verb) else [([word, name], v) for name, v in entry.commands.items()]
    )
]


@pytest.mark.parametrize(("words", "command"), EVERY, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_every_command_has_help_with_an_example(words: list[str], command: Verb, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert not stop.value.code
    shown = capsys.readouterr().out.replace("\n", " ").replace("  ", " ")
    assert all(f"example: {example}" in shown for example in (command.example, *command.more))


@pytest.mark.parametrize(("words", "command"), EVERY, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_every_example_starts_with_its_command_and_its_options_exist(words: list[str], command: Verb) -> None:
    assert command.example.startswith("retorque ")
    settings = getattr(import_module(f"retorque.{command.module}"), command.settings)
    for example in (command.example, *command.more):
        typed = example.split()
        typed = typed[typed.index("retorque") :]  # a launcher may stand before it
        assert typed[: len(words) + 1] == ["retorque", *words]
        check_options("it", settings, typed[len(words) + 1 :])


def test_help_lists_what_is_there(capsys) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown for verb in COMMANDS)
    assert main(["bench", "--help"]) == 0
    assert "tracking" in capsys.readouterr().out


def test_no_command_is_an_error_that_shows_the_help(capsys) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    (
        (["robotts"], "did you mean 'robots'"),
        (["bench", "trakking"], "did you mean 'tracking'"),
        (["bench", "tracking", "--nois"], "did you mean '--noise'"),
        (["bench", "tracking", "--trials"], "--trials"),
        (["bench", "tracking", "extra"], "extra"),
        (["bench", "tracking", "--seed", "1.5"], "--seed"),
        (["bench", "tracking", "--trials", "1e20"], "--trials"),
        (["bench", "tracking", "--trials", "1" + 20 * "0"], "--trials must be between 1 and 100000"),
        (["bench", "source-to-osc", "--trials", "1" + 20 * "0"], "--trials must be between 1 and 100000"),
        (["bench", "identification", "--trials", "1" + 20 * "0"], "--trials must be between"),
        (["bench", "inverse-dynamics", "--trials", "1" + 20 * "0"], "--trials must be between"),
        (["bench", "impedance-tracking", "--routes", "1" + 20 * "0"], "--routes must be between"),
        (["bench", "tam-bottleneck", "--conditions", "1" + 20 * "0"], "--conditions"),
        (["bench", "speed", "--batch", "1" + 20 * "0"], "--batch must be between"),
        (["demo", "--trials", "1" + 20 * "0"], "--trials must be between"),
        (["bench", "tracking", "--duration", "nan"], "--duration must be between"),
        (["bench", "tracking", "--workers", "-1"], "--workers must be between"),
        (["bench", "tracking", "--robots", 300 * "a"], "aaa"),
        (["bench", "tracking", "--robots", 300 * "a" + ".urdf"], "aaa"),
        (["bench", "tracking", "--json", 300 * "a"], "File name too long"),
        (["demo", "--out", 300 * "a"], "File name too long"),
        (["bench", "tracking", "--adapters", 300 * "a"], "unknown adapter"),
    ),
)
def test_what_is_mistyped_exits_with_2_in_one_line(arguments: list[str], says: str, capsys) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("retorque: ") and error.count("\n") == 1 and says in error


def test_options_take_lists_flags_and_bare_values(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr("retorque.bench.tracking.run", lambda settings: seen.append(settings))
    tracking = ["bench", "tracking", "--robots", "panda", "z1", "--noise"]
    assert main([*tracking, "--payload-step", "--adapters", "direct"]) == 0
    assert main([*tracking, "--payload_step", "0.5"]) == 0
    assert main([*tracking, "--contact", "--payload-step"]) == 0
    assert seen[0].robots == ("panda", "z1") and seen[0].noise and seen[0].adapters == ("direct",)
    assert [settings.payload_step for settings in seen] == [1.0, 0.5, 1.0]


def test_a_report_is_printed_and_written_once_it_is_whole(monkeypatch, tmp_path: Path, capsys) -> None:
    from retorque.bench.report import Report, Row

    row = Row.of([1.0, 3.0], robot="panda", method="direct", metric="joint RMSE", unit="deg", paper=4.16)
    report = Report(bench="tracking", settings={"seed": 0}, rows=[row])
    monkeypatch.setattr("retorque.bench.tracking.run", lambda settings: report)
    file = tmp_path / "new" / "rows.json"
    assert main(["bench", "tracking", "--json", str(file)]) == 0
    assert "joint RMSE [deg]" in capsys.readouterr().out
    assert json.loads(file.read_text())["rows"][0]["mean"] == 2.0


def test_a_result_file_that_cannot_be_written_is_refused_before_the_work(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setattr("retorque.bench.tracking.run", lambda settings: pytest.fail("the work began"))
    (tmp_path / "file").write_text("")
    for bad in (tmp_path, tmp_path / "file" / "rows.json"):
        assert main(["bench", "tracking", "--json", str(bad)]) == 2
        assert "cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_bench_can_go_to_a_cluster(monkeypatch, capsys) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    for words, command in EVERY:
        if words[0] == "bench":
            settings = getattr(import_module(f"retorque.{command.module}"), command.settings)
            assert settings().cluster == "" and settings().workers >= 0, words
    assert main(["bench", "tracking", "--cluster", "local"]) == 2
    assert "retorque[cluster]" in capsys.readouterr().err


REPORT = """
from retorque.bench.report import Report, Row
import retorque.bench.tracking as bench, retorque.cli.main as cli, sys
row = Row.of([1.0, 3.0], robot="panda", method="direct", metric="joint RMSE", unit="deg")
bench.run = lambda settings: Report(bench="tracking", settings={}, rows=[row])
sys.exit(cli.main(["bench", "tracking", *sys.argv[1:]]))
"""


def _shell(line: str, *options: str) -> subprocess.CompletedProcess:
    """A bench that is done at once, with its output redirected by a shell."""
    command = ["bash", "-c", f'"$0" -c "$1" "${{@:2}}" {line}', sys.executable, REPORT, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "code", "says"),
    (
        (">&-", 0, "standard output is closed"),
        (">/dev/full", 2, "cannot print the result (No space left on device)"),
        ("| true", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
    ),
)
def test_output_that_takes_nothing_costs_no_result(tmp_path: Path, line: str, code: int, says: str) -> None:
    file = tmp_path / "rows.json"
    done = _shell(line, "--json", str(file))
    assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert json.loads(file.read_text())["rows"][0]["mean"] == 2.0


def test_a_disk_that_is_full_at_the_end_takes_the_file_only() -> None:
    done = _shell("", "--json", "/dev/full")
    assert done.returncode == 2 and "joint RMSE" in done.stdout
    assert done.stderr.startswith("retorque: cannot write '/dev/full' (No space left on device)")
    assert done.stderr.count("\n") == 1


def test_the_result_may_go_to_standard_output(tmp_path: Path) -> None:
    done = _shell("", "--json", "/dev/stdout")
    assert done.returncode == 0 and "joint RMSE" in done.stdout
    written, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{\n") :])
    assert written["bench"] == "tracking"


def test_a_missing_extra_is_named(monkeypatch, capsys) -> None:
    def needs(settings):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("retorque.bench.tracking.run", needs)
    assert main(["bench", "tracking"]) == 2
    assert "retorque[train]" in capsys.readouterr().err


def test_robots_are_listed(capsys) -> None:
    assert main(["robots"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("panda", "Franka", "g1", "free base", "rad/s"))


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = "{'numpy', 'mujoco', 'pinocchio', 'tyro', 'rich'}"
    code = f"import sys, retorque.cli.main as c; c.main(['--help']); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def children(process: int) -> list[int]:
    """The processes that one has started; none of one that has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


def test_an_interrupt_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "retorque.cli.main", "bench", "tracking", "--robots", "all"]
    parts = ["--adapters", "direct", "--trials", "8", "--duration", "5", "--workers", "2", "--keep", str(tmp_path)]
    process = subprocess.Popen(
        [*command, *parts],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    assert within(240.0, lambda: any(tmp_path.iterdir()))  # a part of fourteen is done
    # GLFW's package asks, in processes of its own, which library there is.
    assert within(60.0, lambda: not any(children(worker) for worker in children(process.pid)))
    os.kill(process.pid, signal.SIGINT)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 130
    assert "Traceback" not in error and "retorque: interrupted" in error


def test_settings_are_dataclasses_whose_options_need_no_order() -> None:
    for words, command in EVERY:
        settings = getattr(import_module(f"retorque.{command.module}"), command.settings)
        assert all(field.kw_only for field in dataclasses.fields(settings)), words
