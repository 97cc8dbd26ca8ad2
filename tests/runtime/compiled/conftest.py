"""One compiled core for all tests of a user, also across the processes that run them."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from retorque.runtime.compiled.build import build


@pytest.fixture(scope="session")
def core() -> Path:
    """The compiled core; where there is no compiler, its tests say so."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: cc is needed for the compiled core")
    before = os.environ.get("RETORQUE_CACHE")
    os.environ["RETORQUE_CACHE"] = str(Path(tempfile.gettempdir()) / f"retorque-tests-{os.getuid()}")
    try:
        return build()
    finally:
        if before is None:
            del os.environ["RETORQUE_CACHE"]
        else:
            os.environ["RETORQUE_CACHE"] = before
