"""XML files in whatever encoding they are: read as they declare themselves, or refused with a sentence."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from retorque.work.errors import RetorqueError


def read_xml(path: Path, *, comments: bool = False) -> ElementTree.Element:
    """The root element of an XML file.

    Args:
        path: the file.
        comments: whether comments are kept as elements.
    """
    try:
        parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=comments))
        return ElementTree.fromstring(path.read_bytes(), parser)
    # A file may name an encoding that does not exist (LookupError) or that the parser cannot follow (ValueError).
    except (ElementTree.ParseError, LookupError, ValueError, OSError) as error:
        raise RetorqueError(
            f"{path.name}: this is not an XML file that can be read ({error}); correct it, or save it as UTF-8"
        ) from None


def as_utf8(path: Path) -> str | None:
    """The text of an XML file that is not plain UTF-8; None of one that is."""
    data = path.read_bytes()
    declared = data[:200].lower()
    named = b"encoding=" in declared and b"utf-8" not in declared and b"ascii" not in declared
    if not named and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return None
    return ElementTree.tostring(read_xml(path), encoding="unicode")
