"""What must not stand in the project's files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FORBIDDEN = {
    # Written in pieces, so that this file passes its own test.
    "a machine's path": r"(?<![\w.])/(?:" + "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me/\\w", "t" + "mp")) + r")/\w",
    "a package host": "|".join(("py" + r"pi\.org", "python" + "hosted", "download" + r"\.pytorch")),
    "an unfinished note": r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b",
}
TEXT = {".py", ".toml", ".md", ".txt", ".yml", ".html", ".css", ".js", ""}


def _tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:  # an unpacked source distribution has no repository
        return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", sorted(FORBIDDEN))
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = []
    for path in _tracked():
        if path.suffix not in TEXT or path.name == "LICENSE":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


def test_the_patterns_find_what_they_are_for() -> None:
    samples = {
        "a machine's path": "see /" + "tmp/x",
        "a package host": "https://py" + "pi.org/simple",
        "an unfinished note": "# TO" + "DO: later",
    }
    for what, sample in samples.items():
        assert re.search(FORBIDDEN[what], sample), what


def test_files_are_short_enough_to_read() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in _tracked()
        if path.suffix == ".py" and (count := len(path.read_text().splitlines())) > 450
    }
    assert not long, long


def test_every_module_begins_with_a_docstring() -> None:
    bare = [
        str(path.relative_to(ROOT))
        for path in _tracked()
        if path.suffix == ".py" and (text := path.read_text()).strip() and not text.startswith(('"""', "#!"))
    ]
    assert not bare, bare
