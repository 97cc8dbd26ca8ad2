"""Checks, errors and the page skeleton."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import matplotlib
import pytest

from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.page import data_address, escape, figure_image, page, table

matplotlib.use("Agg")


@pytest.mark.parametrize("value", (1, 5.5, 10))
def test_numbers_inside_pass(value: float) -> None:
    check_between("--thing", value, 1, 10)


@pytest.mark.parametrize("value", (0, 10.001, float("nan"), float("inf"), -1e308, 10**30))
def test_numbers_outside_are_refused_with_the_range(value: float) -> None:
    with pytest.raises(RetorqueError, match="--thing must be between 1 and 10 s, not"):
        check_between("--thing", value, 1, 10, "s")


def test_limits_are_sensible() -> None:
    assert MOST_TRIALS == 100_000 and MOST_SEED.bit_length() == 63


def test_unknown_names_come_with_the_nearest_and_all() -> None:
    said = str(unknown("robot", "pandda", {"panda", "z1"}))
    assert said == "unknown robot 'pandda'; did you mean 'panda'? on board: panda, z1"
    assert "did you mean" not in str(unknown("robot", "qqqq", ["panda"]))
    assert str(unknown("robot", "x", [])).endswith("on board: ")


class Tags(HTMLParser):
    """Every tag that is opened must be closed."""

    ALONE = ("meta", "img", "br", "!doctype")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Tags:
    reader = Tags()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_a_page_is_whole_and_stands_alone() -> None:
    text = page("A <title> & more", "<p>body</p>", style="p{color:red}")
    assert "A <title> & more" in parsed(text).text
    assert "&lt;title&gt;" in text and "p{color:red}" in text
    assert not re.search(r"(?:src|href)=[\"']?(?:http|//)", text)  # nothing from elsewhere
    assert "prefers-color-scheme:dark" in text and 'name="viewport"' in text


def test_tables_escape_what_they_hold() -> None:
    text = table(["a", "<b>"], [["1", "<script>alert(1)</script>"], ['"', "'"]])
    assert "<script>" not in text and "<b>" not in text
    assert "<script>alert(1)</script>" in parsed(text).text
    assert parsed(text).text.startswith("a<b>")


def test_attributes_cannot_be_broken_out_of() -> None:
    assert '"' not in escape('a"b') and "'" not in escape("a'b")
    assert data_address("image/png", b"\x00\xff") == "data:image/png;base64,AP8="


def test_figures_lie_within_the_page() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([0, 1])
    image = figure_image(figure, 'a "picture"')
    assert image.startswith('<img alt="a &quot;picture&quot;" src="data:image/png;base64,iVBOR')
