"""Slow tests run only when they are asked for: `RETORQUE_SLOW=1`."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("RETORQUE_SLOW") == "1":
        return
    skip = pytest.mark.skip(reason="slow; RETORQUE_SLOW=1 runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)
