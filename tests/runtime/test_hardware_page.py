"""docs/hardware.md: every code, driver and fake is in it."""

from __future__ import annotations

import re
from pathlib import Path

from retorque.cli.hardware.fake import FAKES
from retorque.loop.health import Health
from retorque.runtime.drivers import DRIVERS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "hardware.md").read_text()


def test_every_code_has_its_cause_and_its_cure() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \|(.+)\|$", PAGE, flags=re.MULTILINE))
    missing = [name for name in Health.__members__ if name not in rows]
    assert not missing, f"docs/hardware.md, table of codes: add a row for {', '.join(missing)}"
    unknown = [name for name in rows if name not in Health.__members__]
    assert not unknown, f"docs/hardware.md, table of codes: there is no code {', '.join(unknown)}"
    for name, row in rows.items():
        cause, _, cure = row.partition("|")
        assert cause.strip() and cure.strip(), f"docs/hardware.md: the row of {name} lacks its cause or its cure"


def test_every_driver_and_fake_is_on_the_page() -> None:
    for name in DRIVERS:
        assert f"| `{name}` |" in PAGE, name
    for name in FAKES.commands:
        assert f"retorque fake {name}" in PAGE, name
    assert set(FAKES.commands) == set(DRIVERS)  # what drives a robot was tried against something


def test_the_page_says_that_no_driver_has_met_hardware() -> None:
    from importlib import import_module

    assert "No driver has met hardware yet" in PAGE
    for where, _ in DRIVERS.values():
        module, _, name = where.partition(":")
        said = getattr(import_module(module), name).met_hardware
        assert "against the fake" in said and re.search(r"has (not )?met", said)
