"""`learn` in a second process of this machine, through shared memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retorque.adapt import make
from retorque.loop.adapter import Adapter
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.runtime.learning.remote_learning import Twin
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.processes import end_with_parent
from retorque.work.shared_memory import SharedQueue, SharedRecord

ROWS = 8192
"""Reports that may wait for the learner; a stalled one loses what comes after."""
CAPACITY = 1 << 20
"""Most bytes of a belief."""
LOOK = 0.0005
"""Time between two looks for reports [s]."""
START = 60.0
"""Longest time that a learner may take to start [s]."""


@dataclass(frozen=True, kw_only=True)
class LearnerSpec:
    """Which adapter learns; the same words make it on both sides."""

    adapter: str
    """Its name, or `module:Class`."""
    timestep: float = 1e-3
    """Control period [s]."""
    seed: int = 0
    """Of whatever the adapter draws at random."""
    weights: str | None = None
    """A file of weights instead of the ones on board."""
    settings: Mapping[str, Any] | None = None
    """The adapter's settings."""

    def make(self, robot: Robot) -> Adapter:
        """The adapter for one robot."""
        return make(
            self.adapter,
            robot,
            timestep=self.timestep,
            seed=self.seed,
            weights=self.weights,
            settings=self.settings,
        )


class ProcessLink:
    """The way to a learner in a process of its own, which it starts and ends.

    Args:
        spec: which adapter learns.
        robot: the ideal robot.
    """

    def __init__(self, spec: LearnerSpec, robot: Robot):
        self.refused: Counter[str] = Counter()
        self._ring = SharedQueue(ROWS, 1 + 3 * robot.n)
        self._record = SharedRecord(CAPACITY)
        self._version = 0
        self._folder = tempfile.TemporaryDirectory(prefix="retorque-learner-")
        card = Path(self._folder.name) / "robot.toml"
        robot.save(card)
        words = {"spec": vars(spec), "card": str(card), "ring": self._ring.path, "record": self._record.path}
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "retorque.runtime.learning.learner_process", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError), self.process.stdin as pipe:
            pipe.write(json.dumps(words).encode())
        answer = self.process.stdout.readline().decode().strip()
        if answer != "ready":
            self.close()
            raise RetorqueError(f"the learner's process did not start: {answer or 'it ended at once'}")

    def send(self, row: Array) -> None:
        """Hand over a report; a full ring loses it, which the twin sees as a gap."""
        if not self._ring.add(row):
            self.refused["reports lost"] += 1

    def newest(self) -> bytes | None:
        """The belief that was published since the last call."""
        found = self._record.newest(self._version)
        if found is None:
            return None
        self._version = found[0]
        return found[1]

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._ring.close()
        self._record.close()
        self._folder.cleanup()


def main() -> None:
    """The learner's process: reports in, beliefs out, until the control process has gone."""
    end_with_parent(int(sys.argv[1]), period=0.1)
    try:
        words = json.load(sys.stdin)
        ring, record = SharedQueue(path=words["ring"]), SharedRecord(path=words["record"])
        twin = Twin(LearnerSpec(**words["spec"]).make(load(words["card"])))
    except RetorqueError as error:
        _say(str(error))
        return
    _say("ready")
    while True:
        rows = ring.waiting()
        if not len(rows):
            time.sleep(LOOK)
            continue
        ring.take(ring.taken + len(rows))
        belief = twin.take(rows)
        if belief is not None:
            record.publish(belief)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
