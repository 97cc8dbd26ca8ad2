"""The table of the worlds bench: worlds as rows, adapters as columns, and how bad each adapter's worst world is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from retorque.bench.report import Report, Row

LEAST = 0.05
"""Errors below this count as this where ratios are taken: nobody sees them [deg]."""
JOINT = "joint RMSE"


@dataclass(frozen=True, kw_only=True)
class WorldsReport(Report):
    """Rows of the worlds bench; each row's `extra` says its world."""

    def summary(self) -> list[dict[str, Any]]:
        """For each robot and adapter: worst ratio to direct, of a world's mean and of a single trial, and regret."""
        found = []
        for robot in dict.fromkeys(row.robot for row in self.rows):
            cells = {(row.extra["world"], row.method): row for row in self._of(robot, JOINT)}
            worlds = list(dict.fromkeys(world for world, _ in cells))
            contestants = [m for m in dict.fromkeys(method for _, method in cells) if m != "oracle"]
            best = {w: min(cells[w, m].mean for m in contestants if (w, m) in cells) for w in worlds}
            for method in dict.fromkeys(method for _, method in cells):
                served = [w for w in worlds if (w, method) in cells]
                ratio = {w: cells[w, method].mean / max(cells[w, "direct"].mean, LEAST) for w in served}
                trial = {w: _worst_trial(cells[w, method], cells[w, "direct"]) for w in served}
                regret = {w: max(cells[w, method].mean, LEAST) / max(best[w], LEAST) for w in served}
                found.append(
                    {
                        "robot": robot,
                        "method": method,
                        "worst ratio to direct": max(ratio.values()),
                        "in": max(ratio, key=lambda w: ratio[w]),
                        "worst trial's ratio": max(trial.values()),
                        "its world": max(trial, key=lambda w: trial[w]),
                        "worst regret": max(regret.values()),
                        "regretted in": max(regret, key=lambda w: regret[w]),
                        "mean regret": float(np.mean(list(regret.values()))),
                        "worlds": len(served),
                    }
                )
        return found

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "summary": self.summary()}

    def table(self) -> Table:
        robots = list(dict.fromkeys(row.robot for row in self.rows))
        methods = list(dict.fromkeys(row.method for row in self.rows))
        table = Table(title="worlds", caption=self.notes or None)
        for name in (*(["robot"] if len(robots) > 1 else []), "world", "metric"):
            table.add_column(name)
        for name in ("ideal", *methods):
            table.add_column(name, justify="right")
        for robot in robots:
            for metric in (JOINT, "end force"):
                self._add_rows(table, [robot] if len(robots) > 1 else [], self._of(robot, metric), methods)
            table.add_section()
            for key, shown in (("worst ratio to direct", "in"), ("worst trial's ratio", "its world"),
                               ("worst regret", "regretted in"), ("mean regret", "")):  # fmt: skip
                line = {s["method"]: s for s in self.summary() if s["robot"] == robot}
                cells = [f"{line[m][key]:.2f} {line[m].get(shown, '')}".strip() if m in line else "-" for m in methods]
                table.add_row(*([robot] if len(robots) > 1 else []), key, "", "", *cells)
            table.add_section()
        return table

    def _add_rows(self, table: Table, lead: list[str], rows: list[Row], methods: list[str]) -> None:
        for world in dict.fromkeys(row.extra["world"] for row in rows):
            cells = {row.method: row for row in rows if row.extra["world"] == world}
            one = next(iter(cells.values()))
            name = world if one.extra["trained on"] else f"{world} *"
            ideal = f"{one.extra['ideal']:.1f}" if one.metric != JOINT else ""
            digits = 1 if one.metric != JOINT else 3
            shown = [f"{cells[m].mean:.{digits}f} ({cells[m].extra['worst']:.{digits}f})" if m in cells else "-"
                     for m in methods]  # fmt: skip
            table.add_row(*lead, name, f"{one.metric} \\[{one.unit}], mean (worst)", ideal, *shown)

    def _of(self, robot: str, metric: str) -> list[Row]:
        return [row for row in self.rows if (row.robot, row.metric) == (robot, metric)]


def _worst_trial(mine: Row, direct: Row) -> float:
    """Largest ratio of one trial's error to the same trial's without a correction."""
    ours, theirs = (np.array(row.extra["trial_values"]) for row in (mine, direct))
    return float(np.max(ours / np.maximum(theirs, LEAST)))
