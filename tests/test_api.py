"""The flat public interface."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import retorque


@pytest.mark.parametrize("name", retorque.__all__)
def test_every_public_name_resolves(name: str) -> None:
    value = getattr(retorque, name)
    assert name == "__version__" or value.__doc__


def test_the_names_and_their_homes_are_the_same_list() -> None:
    assert {*retorque._HOME, "__version__"} == set(retorque.__all__) <= set(dir(retorque))


def test_the_version_is_the_packages() -> None:
    assert retorque.__version__ == version("retorque")


def test_a_name_that_is_not_there_says_what_is() -> None:
    with pytest.raises(AttributeError, match="Robot"):
        _ = retorque.Robott


def test_the_core_never_imports_torch() -> None:
    lines = ["import sys, retorque", "[getattr(retorque, name) for name in retorque.__all__]"]
    lines += ["import retorque.bench.tracking, retorque.cli.main", "sys.exit('torch' in sys.modules)"]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)]).returncode == 0
