"""What every bench returns: rows with mean, spread, interval and the published figure, as a table and as JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from scipy.special import stdtrit

from retorque.work.array import Array
from retorque.work.files import versions, write_whole

UNRECORDED = ("json", "workers", "cluster", "keep")
"""Settings that no result depends on."""


def recorded(settings: Any) -> dict[str, Any]:
    """The settings that a report keeps."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name not in UNRECORDED}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a published table, measured here."""

    robot: str
    method: str
    metric: str
    unit: str
    mean: float
    std: float
    ci95: tuple[float, float]
    """95 % interval of the mean (Student's t over trials; Wilson's of a rate)."""
    trials: int
    paper: float | None = None
    """The published figure, where there is one."""
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Further figures of the same row (worst trial, first seconds, condition, cost)."""

    @classmethod
    def of(cls, values: Array, **fields: Any) -> Row:
        """The row of one value a trial."""
        values = np.asarray(values, dtype=float).ravel()
        with np.errstate(invalid="ignore"):  # a trial that diverged makes the row infinite, not an error
            mean = float(np.mean(values))
            std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        half = float(stdtrit(len(values) - 1, 0.975)) * std / np.sqrt(len(values)) if len(values) > 1 else 0.0
        return cls(mean=mean, std=std, ci95=(mean - half, mean + half), trials=len(values), **fields)

    @classmethod
    def rate(cls, values: Array, **fields: Any) -> Row:
        """The row of a rate, from what succeeded and what did not; its interval is Wilson's."""
        return dataclasses.replace(cls.of(values, **fields), ci95=wilson(values))

    @classmethod
    def reached(cls, times: Array, *, extra: dict[str, Any], **fields: Any) -> Row:
        """The row of the time to a target, not finite where a run never got there: the mean is of those that did, and
        the trials are all."""
        there = times[np.isfinite(times)]
        row = cls.of(there if len(there) else np.array([np.inf]), extra={"reached": len(there), **extra}, **fields)
        return dataclasses.replace(row, trials=len(times))


def wilson(values: Array) -> tuple[float, float]:
    """95 % interval of a rate, from zeros and ones (trials,)."""
    from scipy.stats import binomtest  # a second to load, which few benches need

    found = binomtest(int(np.sum(values)), len(values)).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """The rows of one bench, and the settings that made them."""

    bench: str
    settings: dict[str, Any]
    rows: list[Row]
    notes: str = ""
    """What a reader should know about the comparison, printed under the table."""

    def as_json(self) -> dict[str, Any]:
        """The JSON form: bench, settings (with versions), rows."""
        settings = {**self.settings, "versions": versions()}
        rows = []
        for row in self.rows:
            fields = dataclasses.asdict(row)
            fields["ci95"] = list(row.ci95)
            rows.append({**fields.pop("extra"), **fields})
        return {"bench": self.bench, "settings": settings, "rows": rows, "notes": self.notes}

    def save(self, path: str | Path) -> Path:
        """Write the JSON whole or not at all; the path."""
        return write_whole(path, json.dumps(_plain(self.as_json()), indent=2, allow_nan=False) + "\n")

    def table(self) -> Table:
        """The rows for a terminal, ours beside theirs."""
        table = Table(title=f"{self.bench}", caption=self.notes or None)
        scalar = (int, float, str)
        extras = list(dict.fromkeys(k for row in self.rows for k, v in row.extra.items() if isinstance(v, scalar)))
        for name in ("robot", "method", "metric"):
            table.add_column(name)
        for name in ("mean ± std", "95 % interval", "paper", *extras, "trials"):
            table.add_column(name, justify="right")
        for row in self.rows:
            table.add_row(
                row.robot,
                row.method,
                f"{row.metric} [{row.unit}]".replace("[", "\\["),
                f"{row.mean:.4g} ± {row.std:.2g}",
                f"{row.ci95[0]:.4g} .. {row.ci95[1]:.4g}",
                "-" if row.paper is None else f"{row.paper:.4g}",
                *(_short(row.extra.get(key)) for key in extras),
                str(row.trials),
            )
        return table


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Only what JSON knows: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (np.floating, float)):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Path):
        return str(value)
    return value
