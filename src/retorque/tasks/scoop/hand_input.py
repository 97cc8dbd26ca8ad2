"""A person at a terminal as a source of poses: keys and mouse move the desired pose step by step."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STEP, TURN = 0.005, 0.05
"""Of one key press [m, rad]."""
MOUSE = 0.004
"""Of one character cell that the mouse moves by while its button is down [m]."""
KEYS = {
    b"w": (1, 0, 0, 0),
    b"s": (-1, 0, 0, 0),
    b"a": (0, 1, 0, 0),
    b"d": (0, -1, 0, 0),
    b"r": (0, 0, 1, 0),
    b"f": (0, 0, -1, 0),
    b"q": (0, 0, 0, -1),
    b"e": (0, 0, 0, 1),
}
"""Steps forward, left, up, and of the nose downwards."""
END = b"x"
"""The key that ends."""
HELP = "w/s forward and back, a/d left and right, r/f up and down, q/e nose up and down, x ends; drag the mouse to move"
MOUSE_REPORT = re.compile(rb"\x1b\[<(\d+);(\d+);(\d+)([Mm])")
"""A terminal's mouse report (SGR): button, column, row, pressed or let go."""
MOUSE_ON, MOUSE_OFF = b"\x1b[?1002h\x1b[?1006h", b"\x1b[?1006l\x1b[?1002l"
BUTTON, DRAG, WHEEL_UP, WHEEL_DOWN = 0, 32, 64, 65
"""Codes in a mouse report."""


class HandInput:
    """Poses that a person leads.

    Args:
        typed: what has come from the terminal since it was last asked.
        position: (3,) where the tool begins [m].
        pitch: of the tool there, nose down [rad].
    """

    def __init__(self, typed: Callable[[], bytes], position: Array, pitch: float):
        self._typed = typed
        self._begin = np.array([*position, pitch], dtype=float)
        self.ended = False
        """Whether the person asked to end."""

    def reset(self, state: State) -> None:
        self._now = self._begin.copy()
        self._cell: tuple[int, int] | None = None

    def pose(self, state: State) -> tuple[Array, Array]:
        self.take(self._typed())
        turn = from_axis_angle((0.0, 1.0, 0.0), float(self._now[3]))
        return self._now[None, :3].copy(), turn[None]

    def take(self, typed: bytes) -> None:
        """Move the desired pose by what was typed and dragged; what means nothing is left."""
        for report in MOUSE_REPORT.finditer(typed):
            button, column, row = (int(part) for part in report.groups()[:3])
            if button in (WHEEL_UP, WHEEL_DOWN):
                self._now[2] += STEP if button == WHEEL_UP else -STEP
            elif report.group(4) == b"m":
                self._cell = None
            elif button in (BUTTON, DRAG):
                if self._cell is not None and button == DRAG:
                    self._now[:2] -= MOUSE * np.array([row - self._cell[1], column - self._cell[0]])
                self._cell = column, row
        for key in re.findall(rb"[a-z]", MOUSE_REPORT.sub(b"", typed)):
            if key == END:
                self.ended = True
            elif key in KEYS:
                self._now += np.array(KEYS[key]) * [STEP, STEP, STEP, TURN]


@contextmanager
def terminal() -> Iterator[Callable[[], bytes]]:
    """Keys and mouse of the terminal as they come; it is put back as it was."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RetorqueError("--input keyboard needs a terminal; run it in one, or leave --input at script")
    import termios
    import tty

    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(source)

    def typed() -> bytes:
        ready, _, _ = select.select([source], [], [], 0.0)
        return os.read(source, 4096) if ready else b""

    try:
        tty.setcbreak(source)
        os.write(sink, MOUSE_ON)
        yield typed
    finally:
        os.write(sink, MOUSE_OFF)
        termios.tcsetattr(source, termios.TCSADRAIN, before)
