"""Interrupts that are never lost: what is interrupted at the wrong moment may swallow the exception."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_held() -> Iterator[threading.Event]:
    """Let an interrupt wait for the end, or for whoever looks at the event: it is set once one has come.

    A library that loads, or a callback of the garbage collector, would end the exception, and the work would go on.
    """
    heard = threading.Event()
    unheard = threading.current_thread() is not threading.main_thread()
    if unheard or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, or someone else's
        yield heard
        return
    before = signal.signal(signal.SIGINT, lambda *_: heard.set())
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)
    if heard.is_set():
        raise KeyboardInterrupt
