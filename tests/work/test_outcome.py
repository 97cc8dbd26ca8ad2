"""A command's end: a file that cannot be written takes no other with it."""

from __future__ import annotations

from pathlib import Path

from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole
from retorque.work.outcome import Outcome


def test_a_file_that_cannot_be_written_takes_no_other_with_it(tmp_path: Path) -> None:
    outcome = Outcome()
    outcome.show("found", style="dim")
    outcome.later("one", lambda: write_whole("/dev/full", "x"))
    outcome.later("two", lambda: write_whole(tmp_path / "two", "x"))
    assert not list(tmp_path.iterdir())  # only once everything has been shown
    (one, error), (two, path) = outcome.write_files()
    assert (one, two) == ("one", "two") and path == tmp_path / "two" and path.read_text() == "x"
    assert isinstance(error, RetorqueError) and "No space left" in str(error)
