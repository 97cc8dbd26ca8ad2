"""From a log to a card, and from the card back to a robot: simulated, fed forward, and as a prior."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from retorque.robots.robot import Robot

PANDA = Robot.load("panda")
spec = spec_from_file_location("round_trip", Path(__file__).with_name("round_trip.py"))
assert spec is not None and spec.loader is not None
round_trip = module_from_spec(spec)
spec.loader.exec_module(round_trip)
KINDS = ("hidden parameters", "stand-in")


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each kind of stand-in, identified from its own log."""
    folder = tmp_path_factory.mktemp("cards")
    return {kind: round_trip.identified_card(PANDA, kind, 0, folder) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_cards_simulation_is_near_the_robot(cards: dict[str, Path], kind: str) -> None:
    assert round_trip.ratio(PANDA, kind, 0, Robot.load(cards[kind]), trials=2) < (0.2 if kind == "stand-in" else 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_identified_helps_from_the_first_tick(cards: dict[str, Path], kind: str) -> None:
    error = round_trip.first_errors(PANDA, kind, 0, cards[kind], trials=2)
    assert error["recursive from the card"] < error["recursive from ranges"]
    assert error["identified"] < 0.2 * error["direct"]
    assert error["identified"] < error["recursive from ranges"]
