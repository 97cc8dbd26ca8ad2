"""Recording every tick: the control thread writes into a mapped ring, a process of its own writes the file."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from time import sleep, time_ns
from types import TracebackType
from typing import Any

import numpy as np

from retorque.logs.recording import FORMAT, TickLayout, kinematics_of
from retorque.loop.loop import Tick
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import check_file, versions
from retorque.work.shared_memory import SharedQueue

ROWS = 16_384
"""Ticks that the ring holds: 16 s at 1 kHz, more than a new writer takes to start."""
WATCH = 0.1
"""Time between two looks at the writer [s]."""
LOST_FILE = 3
"""Exit code of a writer that cannot write any more."""
RESTARTS = 5
"""Writers that may be lost before nobody starts another."""


class Recorder:
    """Records ticks of one robot into an MCAP file; used as a context.

    What was added is safe from the death of this process: the writer goes on until the ring is empty. Should the writer
    die, another one goes on in `NAME.part2.mcap` from the first tick that was not safely written; `read_recording`
    reads both. A full disk, or a ring that is full, costs ticks, which are counted, and never the loop.

    Args:
        path: of the file; one that is there is written over.
        robot: the ideal robot.
        timestep: control period [s].
        about: what else the file should say: adapter, driver, host.
    """

    def __init__(self, path: str | Path, robot: Robot, timestep: float, about: dict[str, Any] | None = None):
        self.path = Path(path)
        if self.path.suffix != ".mcap":
            raise RetorqueError(f"a recording's name ends in .mcap, not '{self.path.name}'")
        check_file(self.path)
        self.layout = TickLayout(robot.n)
        self._ring = SharedQueue(ROWS, self.layout.width)
        self._row, self._offset = self.layout.row, self._ring.memory.size() - 8 * ROWS * self.layout.width
        self._zeros = np.zeros(robot.n)
        self._count = 0
        self._about = {
            "format": FORMAT,
            "robot": robot.name,
            "joints": list(robot.joint_names),
            "kinematics": kinematics_of(robot),
            "timestep": timestep,
            "versions": versions(),
            **(about or {}),
        }
        self.restarts = 0
        """Writers that had to be started again."""
        self.failure = ""
        """Why nothing is written any more, in words."""
        self.lost = 0
        """Ticks that found the ring full."""
        for old in self.path.parent.glob(f"{self.path.stem}.part*.mcap"):
            old.unlink()
        self._over = False
        self._writer = self._start(self.path)
        answer = self._answer()
        if answer != "ready":
            self._writer.wait()
            self._let_go()
            self._ring.close()
            raise RetorqueError(answer or "the recorder's process ended at once; run again")
        self._thread = threading.Thread(target=self._watch, name="recorder", daemon=True)
        self._thread.start()

    @property
    def writer(self) -> int:
        """Process number of the writer."""
        return self._writer.pid

    def add(self, tick: Tick, health: int = 0, belief: int = 0, correction: Array | None = None) -> None:
        """Take a tick; about 1 us."""
        ring = self._ring
        index = ring.slot()
        if index < 0:
            self.lost += 1
            self._count += 1
            return
        state, nominal, command = tick.state, tick.nominal.torque, tick.command.torque
        zeros = self._zeros
        self._row.pack_into(
            ring.memory,
            self._offset + 8 * index * ring.width,
            self._count,
            state.time,
            time_ns(),
            health,
            belief,
            state.position.tobytes(),
            state.velocity.tobytes(),
            state.torque.tobytes(),
            (zeros if nominal is None else nominal).tobytes(),
            (zeros if command is None else command).tobytes(),
            (zeros if correction is None else correction).tobytes(),
        )
        self._count += 1
        ring.commit()

    def close(self) -> None:
        """Wait until everything is in the file."""
        if self._over:
            return
        self._over = True
        self._thread.join()
        self._finish()
        while self._ring.taken < self._ring.written and not self.failure and self.restarts < RESTARTS:
            self._restart()  # the writer was killed before it had finished
            self._finish()
        self._let_go()
        self._ring.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, path: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "retorque.runtime.recording.record_writer", self._ring.path, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what interrupts the loop must not interrupt the recording of how it ended
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._about).encode() + b"\n")
            process.stdin.flush()
        return process

    def _answer(self) -> str:
        assert self._writer.stdout is not None
        return self._writer.stdout.readline().decode().strip()

    def _watch(self) -> None:
        while not self._over:
            sleep(WATCH)
            if self._writer.poll() is None:
                continue
            self._note_failure()
            if self.failure or self.restarts >= RESTARTS:
                self.failure = self.failure or "the recorder's process keeps dying"
                return
            self._restart()

    def _finish(self) -> None:
        """Let the writer write the rest and end."""
        assert self._writer.stdin is not None
        with contextlib.suppress(OSError):
            self._writer.stdin.close()  # which tells it to finish
        self._writer.wait()
        self._note_failure()

    def _let_go(self) -> None:
        """Close what is left of a writer that has ended."""
        for pipe in (self._writer.stdin, self._writer.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _restart(self) -> None:
        self._let_go()
        self.restarts += 1
        self._writer = self._start(self.path.with_name(f"{self.path.stem}.part{self.restarts + 1}.mcap"))
        self._answer()

    def _note_failure(self) -> None:
        if self._writer.returncode == LOST_FILE and not self.failure:
            self.failure = self._answer() or f"'{self.path}' could not be written"
