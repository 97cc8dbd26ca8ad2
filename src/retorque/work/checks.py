"""Numbers that a user gave, checked before the work begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retorque.work.errors import RetorqueError, unknown

MOST_TRIALS = 100_000
"""More trials of a simulated bench than this no machine holds at once."""
MOST_SEED = 2**63 - 1
MOST_WORKERS = 4096


def check_names(kind: str, option: str, names: Sequence[object], choices: Iterable[str] | None = None) -> None:
    """Refuse an option that names nothing, or something that is not on board.

    Args:
        kind: what is named, such as "robot".
        option: as it is typed, such as "--robots".
        names: what was given.
        choices: all that may be named, where that is known here.
    """
    if not names:
        raise RetorqueError(f"name at least one {kind} after {option}")
    known = None if choices is None else list(choices)
    for name in names:
        if known is not None and name not in known:
            raise unknown(kind, str(name), known)


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
