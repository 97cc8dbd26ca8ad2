"""XML in whatever encoding it is, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from retorque.robots.formats.xml_file import as_utf8, read_xml
from retorque.work.errors import RetorqueError

ROBOT = '<?xml version="1.0"{}?><!-- made by hand --><robot name="Müller ü 机"><link name="a"/></robot>'


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("declared", [True, False])
def test_marks_and_declarations_are_followed(codec: str, declared: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    name = codec.removesuffix("-sig")
    path.write_bytes(ROBOT.format(f' encoding="{name}"' if declared else "").encode(codec))
    assert read_xml(path).get("name") == "Müller ü 机"
    text = as_utf8(path)
    if codec == "utf-8":
        assert text is None  # as it is
    else:
        assert text is not None and "Müller ü 机" in text and "encoding" not in text


def test_latin_files_are_read_as_they_say(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes('<?xml version="1.0" encoding="ISO-8859-1"?><robot name="Müller"/>'.encode("latin-1"))
    assert read_xml(path).get("name") == "Müller"
    assert "Müller" in str(as_utf8(path))


def test_comments_are_kept_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<robot><!-- made by hand --><link/></robot>")
    assert [len(read_xml(path, comments=kept)) for kept in (True, False)] == [2, 1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not xml",
        b"<robot>",
        b"<robot></link>",
        b'<?xml version="1.0" encoding="no-such"?><robot/>',
        b"<robot name='\xff'/>",
        b"\x00\x01\x02",
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><robot>&x;</robot>",
    ],
)
def test_what_is_no_xml_is_refused_by_name(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_bytes(data)
    with pytest.raises(RetorqueError, match=r"odd\.urdf.*UTF-8"):
        read_xml(path)


def test_a_folder_and_nothing_are_refused_too(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.urdf"):
        with pytest.raises(RetorqueError, match="can be read"):
            read_xml(path)
