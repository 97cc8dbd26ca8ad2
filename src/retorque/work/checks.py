"""Numbers that a user gave, checked before the work begins."""

from __future__ import annotations

from retorque.work.errors import RetorqueError

MOST_TRIALS = 100_000
"""More trials of a simulated bench than this no machine holds at once."""
MOST_SEED = 2**63 - 1
MOST_WORKERS = 4096


def check_between(option: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Refuse a number outside a range; one that is no number is outside every range.

    Args:
        option: as it is typed, such as "--trials".
        value: what was given.
        low: least that can be used.
        high: most that can be used.
        unit: of all three, such as "s".
    """
    if not low <= value <= high:
        unit = f" {unit}" if unit else ""
        raise RetorqueError(f"{option} must be between {low:g} and {high:g}{unit}, not {value}")
