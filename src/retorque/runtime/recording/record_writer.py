"""The recorder's process: takes ticks out of the ring and writes them as MCAP, until the control process is done."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import IO, Any

from retorque.logs.recording import ABOUT, CDR, TOPIC, TYPE, TickLayout
from retorque.runtime.recording.recorder import LOST_FILE
from retorque.work.shared_memory import SharedQueue

CHUNK_TICKS = 100
"""Ticks that are written at once: what a killed writer may leave half-written, and the ring still holds."""
LOOK = 0.01
"""Time between two looks at the ring [s]."""


class TickWriter:
    """Writes rows of a ring into one MCAP file; a row is taken from the ring only once the file has it.

    Args:
        ring: where ticks come from.
        path: of the file.
        about: whose recording it is.
    """

    def __init__(self, ring: SharedQueue, path: Path, about: dict[str, Any]):
        from mcap.writer import CompressionType, Writer

        self.layout = TickLayout(len(about["joints"]))
        self._ring = ring
        self._file: IO[bytes] = open(path, "wb")  # noqa: SIM115 (closed by `finish`); buffered, or mcap loses the end
        chunk = CHUNK_TICKS * (8 * self.layout.width + 40)
        self._writer = Writer(self._file, chunk_size=chunk, compression=CompressionType.ZSTD)
        self._writer.start(profile="ros2", library="retorque")
        self._writer.add_metadata(ABOUT, {"about": json.dumps(about)})
        schema = self._writer.register_schema(TYPE, "ros2msg", self.layout.schema().encode())
        self._channel = self._writer.register_channel(TOPIC, "cdr", schema)
        self._file.flush()
        self._position, self._next = self._file.tell(), ring.taken

    def drain(self) -> int:
        """Write what waits in the ring; how many ticks that was."""
        rows = self._ring.waiting(self._next)
        records = self.layout.rows(rows.tobytes())
        for row, record in zip(rows, records, strict=True):
            stamp, sequence = int(record["stamp"]), int(record["sequence"])
            self._writer.add_message(self._channel, stamp, CDR + row.tobytes(), stamp, sequence & 0xFFFFFFFF)
            self._next += 1
            if self._file.tell() != self._position:  # a chunk is complete
                self._file.flush()
                self._position = self._file.tell()
                self._ring.take(self._next)
        return len(rows)

    def finish(self) -> None:
        """Write the rest and the index."""
        self.drain()
        self._writer.finish()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._ring.take(self._next)


def main() -> int:
    """Write until the other end of standard input has gone: closed, or killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path = Path(sys.argv[2])
    try:
        about = json.loads(sys.stdin.buffer.readline())
        ring = SharedQueue(path=sys.argv[1])
        writer = TickWriter(ring, path, about)
    except ModuleNotFoundError:
        _say("recordings need mcap; run: pip install 'retorque[record]'")
        return LOST_FILE
    except (OSError, ValueError) as error:
        _say(f"cannot write '{path}' ({getattr(error, 'strerror', None) or error}); name another file")
        return LOST_FILE
    _say("ready")
    try:
        while not select.select([sys.stdin], [], [], 0.0)[0]:
            if not writer.drain():
                time.sleep(LOOK)
        writer.finish()
    except OSError as error:
        _say(f"'{path}' could not be written any further ({error.strerror or error}); make room")
        return LOST_FILE
    return 0


def _say(line: str) -> None:
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # the control process has gone


if __name__ == "__main__":
    code = main()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nobody may be left to read what is still to be flushed)
    os._exit(code)
