"""Robot files in odd encodings: read as they declare themselves, or refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from retorque.robots import load
from retorque.robots.formats.mjcf import write_mjcf
from retorque.robots.formats.urdf import write_urdf
from retorque.work.errors import RetorqueError

WRITERS = {"robot.xml": write_mjcf, "robot.mjcf": write_mjcf, "robot.urdf": write_urdf}


def _declared(text: str, encoding: str) -> str:
    """A text with the declaration and a letter that is not ASCII."""
    body = text.split("?>", 1)[-1].lstrip()
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<!-- Größe in m -->\n{body}'


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize(
    ("encoding", "codec"),
    [("utf-16", "utf-16"), ("iso-8859-1", "latin-1"), ("windows-1252", "cp1252"), ("utf-8", "utf-8-sig")],
)
def test_declared_encodings_are_read(file: str, encoding: str, codec: str, tmp_path: Path) -> None:
    robot = load("z1")
    (tmp_path / file).write_bytes(_declared(WRITERS[file](robot), encoding).encode(codec))
    assert load(tmp_path / file).joint_names == robot.joint_names


@pytest.mark.parametrize("file", WRITERS)
@pytest.mark.parametrize(
    ("encoding", "codec"),
    [("utf-8", "latin-1"), ("no-such", "utf-8"), ("utf-32", "utf-32"), ("gb2312", "gb18030"), ("utf-16", "utf-8")],
)
def test_what_lies_about_its_encoding_is_refused(file: str, encoding: str, codec: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(_declared(WRITERS[file](load("z1")), encoding).encode(codec))
    with pytest.raises(RetorqueError, match="not an XML file that can be read"):
        load(tmp_path / file)


@pytest.mark.parametrize("file", WRITERS)
def test_latin_letters_behind_a_utf8_mark_are_refused(file: str, tmp_path: Path) -> None:
    text = _declared(WRITERS[file](load("z1")), "iso-8859-1").encode("latin-1")
    (tmp_path / file).write_bytes(b"\xef\xbb\xbf" + text)
    try:
        assert load(tmp_path / file).n == 6  # some parsers trust the declaration
    except RetorqueError as error:
        assert "UTF-8" in str(error)
