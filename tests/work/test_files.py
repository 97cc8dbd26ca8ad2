"""Result files: whole or not at all, into devices, pipes and links, and refused before the work."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retorque.work.errors import RetorqueError
from retorque.work.files import check_file, check_folder, write_whole


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.json"
    assert write_whole(file, "one") == file and file.read_text() == "one"
    file.chmod(0o640)
    before = file.stat().st_ino
    write_whole(file, b"two")
    assert file.read_text() == "two" and file.stat().st_ino != before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["a.json"]


def test_a_failed_writing_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "a"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(RetorqueError, match="No space left on device"):
        write_whole(file, "new")
    assert file.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real, link, dangling = tmp_path / "far" / "real", tmp_path / "link", tmp_path / "dangling"
    real.write_text("old")
    link.symlink_to(real)
    dangling.symlink_to(tmp_path / "far" / "later")
    for path in (link, dangling):
        check_file(path)
        write_whole(path, "new")
        assert path.is_symlink() and path.resolve().read_text() == "new"


def test_a_file_of_several_names_stays_one_file(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a longer old text")
    other.hardlink_to(one)
    write_whole(one, "new")
    assert other.read_text() == "new" and one.samefile(other)


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_file(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join(10.0)
    assert found == ["through"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_devices_are_written_into_and_a_full_one_says_so() -> None:
    check_file(Path("/dev/null"))
    write_whole("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(RetorqueError, match="No space left on device"):
        write_whole("/dev/full", "x")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("to_file", (False, True))
def test_standard_output_gets_both_what_is_printed_and_what_is_written(tmp_path: Path, to_file: bool) -> None:
    code = (
        "from retorque.work.files import write_whole; print('table'); write_whole('/dev/stdout', '{}\\n'); print('end')"
    )
    out = tmp_path / "out"
    if to_file:
        with out.open("w") as file:
            subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        said = out.read_text()
    else:
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "table\n{}\nend\n"


def test_what_could_not_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for bad in (tmp_path, tmp_path / "file" / "a", tmp_path / ("a" * 300), Path("/proc/none/a")):
        with pytest.raises(RetorqueError, match="cannot write") as refused:
            check_file(bad)
        assert "\n" not in str(refused.value)
    check_file(tmp_path / "new" / "deep" / "a")
    with pytest.raises(RetorqueError, match="is a file"):
        check_folder(tmp_path / "file")
    for bad in (tmp_path / ("a" * 300), tmp_path / "file" / "a"):
        with pytest.raises(RetorqueError, match=r"cannot make the folder|cannot write into"):
            check_folder(bad)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
