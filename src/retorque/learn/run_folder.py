"""A training's folder: the settings that must not change, metrics, checkpoint and weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


def check_same_run(place: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse to go on with a run that was begun with other settings."""
    wanted = json.loads(json.dumps(wanted, default=str))  # as it comes back from a file
    other = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    if other:
        raise RetorqueError(
            f"'{place}' holds a run with other settings ({', '.join(other)}); choose another folder or delete it"
        )


class RunFolder:
    """The folder of one run, which nobody else's settings may join.

    Args:
        path: the folder; made when it is missing.
        identity: what must not change between the parts of a run.
    """

    def __init__(self, path: Path, identity: dict[str, Any]):
        self.path, self.identity = path, identity
        self.checkpoint = path / "checkpoint.safetensors"
        self.weights = path / "weights.safetensors"
        self._metrics = path / "metrics.jsonl"
        path.mkdir(parents=True, exist_ok=True)
        self._claim()

    def _claim(self) -> None:
        """Make the folder this run's, or see that it is."""
        file = self.path / "settings.json"
        if not file.exists():
            write_whole(file, json.dumps(self.identity, indent=1, default=str) + "\n")
            return
        try:
            found = dict(json.loads(file.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise RetorqueError(f"cannot read '{file}' ({error}); choose another folder") from error
        check_same_run(self.path, found, self.identity)

    def note(self, **figures: Any) -> None:
        """Add a point to the metrics."""
        with self._metrics.open("a") as file:
            file.write(json.dumps(figures, default=float) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The points noted so far; a last line that was cut by a crash is left out."""
        if not self._metrics.exists():
            return []
        points = []
        for line in self._metrics.read_text().splitlines():
            try:
                points.append(json.loads(line))
            except ValueError:
                continue
        return points

    def forget_after(self, step: int) -> None:
        """Drop points beyond the step that a run resumes from: they are made again."""
        points = [point for point in self.metrics() if point.get("step", 0) <= step]
        write_whole(self._metrics, "".join(json.dumps(point) + "\n" for point in points))
