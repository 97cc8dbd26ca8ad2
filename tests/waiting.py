"""Waiting for a condition instead of a time: a busy machine is slow, not wrong."""

from __future__ import annotations

import time
from collections.abc import Callable


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return met
