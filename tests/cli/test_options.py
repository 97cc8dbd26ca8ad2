"""Options are the fields of a dataclass: typed in any order, of the types that these have, or refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.cli.options import check_options, parse
from retorque.cli.verb import Verb
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Every kind of field that settings have."""

    trials: int = 3
    """How many."""
    duration: float = 1.5
    """How long [s]."""
    robots: tuple[str, ...] = ("panda",)
    """Which."""
    noise: bool = False
    """Whether."""
    told: bool = True
    """Whether not."""
    json: Path | None = None
    """Where."""
    payload_step: float | None = None
    """When [s]."""
    nested: dict[str, float] = field(default_factory=dict)
    """Further numbers."""


VERB = Verb(summary="a test", example="retorque test", module="none", bare={"--payload-step": "2.5"})


def typed(*arguments: str) -> Any:
    return parse("retorque test", VERB, Typed, list(arguments))


@settings(max_examples=25, deadline=None)
@given(
    trials=st.integers(-(10**30), 10**30),
    duration=st.floats(allow_nan=False),
    robots=st.lists(st.text("abcdefgh_:/.", min_size=1, max_size=8), min_size=1, max_size=3),
    noise=st.booleans(),
    seed=st.randoms(),
)
def test_what_is_typed_is_what_is_set_in_any_order(
    trials: int, duration: float, robots: list[str], noise: bool, seed: Any
) -> None:
    groups = [["--trials", str(trials)], [f"--duration={duration!r}"], ["--robots", *robots]]
    groups += [["--noise"]] if noise else []
    seed.shuffle(groups)
    found = typed(*[word for group in groups for word in group])
    assert (found.trials, found.duration, found.robots, found.noise) == (trials, duration, tuple(robots), noise)
    assert found.json is None and found.payload_step is None


def test_nothing_typed_is_the_defaults_and_underscores_are_dashes() -> None:
    assert typed() == Typed()
    assert typed("--payload_step", "4") == typed("--payload-step", "4") == Typed(payload_step=4.0)


def test_what_is_on_by_default_is_switched_off() -> None:
    assert typed("--no-told") == typed("--no_told") == Typed(told=False)
    with pytest.raises(RetorqueError, match="did you mean '--no-told'"):
        typed("--told")


@pytest.mark.parametrize(
    ("arguments", "value"),
    (
        (("--payload-step",), 2.5),
        (("--payload-step", "--noise"), 2.5),
        (("--payload-step", "0.5", "--noise"), 0.5),
        (("--payload-step", "-1"), -1.0),
    ),
)
def test_a_bare_option_has_its_usual_value(arguments: tuple[str, ...], value: float) -> None:
    assert typed(*arguments).payload_step == value


@pytest.mark.parametrize(
    ("arguments", "said"),
    (
        (("--trials", "many"), "--trials"),
        (("--trials", "3.0"), "--trials"),
        (("--trials", "3", "4"), "4"),
        (("--duration",), "--duration"),
        (("--noise", "maybe"), "maybe"),
        (("positional",), "positional"),
        (("--trails", "3"), "did you mean '--trials'"),
        (("--payload-stop=3",), "did you mean '--payload-step'"),
        (("--zzzz",), "on board: --duration, --help"),
    ),
)
def test_what_cannot_be_read_is_refused_by_name_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(RetorqueError) as refused:
        typed(*arguments)
    assert said in str(refused.value) and "\n" not in str(refused.value) and "│" not in str(refused.value)


def test_options_are_checked_before_anything_is_parsed() -> None:
    check_options("it", Typed, ["--trials", "x", "--json=/a", "word", "-5"])
    with pytest.raises(RetorqueError, match="unknown option of it '--jsn'"):
        check_options("it", Typed, ["--trials", "x", "--jsn=/a"])
