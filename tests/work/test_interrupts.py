"""Interrupts wait where they would be lost, and are seen by whoever looks."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from retorque.work.interrupts import interrupts_held


def test_an_interrupt_while_libraries_load_is_heard_afterwards() -> None:
    loaded = False
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            loaded = True
        assert loaded and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_whoever_looks_sees_an_interrupt_that_a_callback_would_have_swallowed() -> None:
    class Swallows:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # the signal comes within this call, whose exceptions go nowhere

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_held() as heard:
            assert not heard.is_set()
            Swallows()
            assert heard.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_holds_nothing() -> None:
    seen: list[object] = []

    def work() -> None:
        with interrupts_held() as heard:
            seen.append((heard.is_set(), signal.getsignal(signal.SIGINT)))

    now = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, now)]
