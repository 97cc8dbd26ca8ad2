"""Who calls an adapter's `learn`, and when: within the tick, or in a thread beside it."""

from __future__ import annotations

import threading
from types import TracebackType

from retorque.loop.adapter import Adapter


class InlineLearner:
    """Learns within the tick, every `learn_every` ticks: exact and repeatable, as simulations need it."""

    def __init__(self, adapter: Adapter):
        self.adapter = adapter
        self.beliefs = 0
        """Beliefs that were adopted: the number of the one in use."""

    def turn(self) -> None:
        """A tick has been observed."""
        if self.adapter.due():
            belief = self.adapter.learn()
            if belief is not None:
                self.adapter.adopt(belief)
                self.beliefs += 1


class ThreadLearner:
    """Learns in a thread beside the control loop; used as a context, at whose end the thread has gone.

    The tick only counts. The thread takes what the adapter has observed so far, and a new belief reaches the tick by
    one swap of a reference. Should the thread die or fall behind, the belief grows old, which the supervisor sees.
    """

    def __init__(self, adapter: Adapter):
        self.adapter = adapter
        self._due = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._work, name="learn", daemon=True)

    def __enter__(self) -> ThreadLearner:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._due.set()
        self._thread.join()

    def turn(self) -> None:
        """A tick has been observed."""
        if self.adapter.due():
            self._due.set()

    def _work(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._over:
                return
            belief = self.adapter.learn()
            if belief is not None:
                self.adapter.adopt(belief)
