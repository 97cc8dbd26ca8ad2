"""Processes that end when the one that started them goes."""

from __future__ import annotations

import os
import threading
import time


def end_with_parent(parent: int, period: float = 0.5) -> None:
    """End this process soon after its parent, however that one ended.

    A parent that is killed cannot tell its children, and an orphan would compute on for nobody.

    Args:
        parent: the parent's process number, as the parent itself saw it: by now it may have gone.
        period: time between looks [s].
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(period)
        os._exit(1)  # at once: whatever is under way has no reader

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
