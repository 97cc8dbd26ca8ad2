"""Damaged files are refused with a sentence, never with another exception."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.robots import load
from retorque.robots.card import card_text
from retorque.robots.formats.mjcf import write_mjcf
from retorque.robots.formats.urdf import write_urdf
from retorque.work.errors import RetorqueError

FORMS = {"toml": card_text, "xml": write_mjcf, "urdf": write_urdf}


@pytest.mark.parametrize("ending", FORMS)
def test_damaged_files(ending: str, tmp_path: Path) -> None:
    whole = FORMS[ending](load("z1")).encode()
    rng = np.random.default_rng(0)
    path = tmp_path / f"damaged.{ending}"
    refused = 0
    for trial in range(150):
        data = bytearray(whole)
        if trial % 3 == 0:
            data = data[: rng.integers(len(data))]
        elif trial % 3 == 1:
            start = rng.integers(len(data))
            del data[start : start + rng.integers(1, 60)]
        else:
            for place in rng.integers(len(data), size=5):
                data[place] = rng.choice(list(b"0123456789.-e\"'<>=[] \n\xff"))
        path.write_bytes(bytes(data))
        try:
            load(path)
        except RetorqueError as error:
            refused += 1
            assert str(error)
    assert refused > 75
