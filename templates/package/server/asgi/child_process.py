"""Processes that serve for a parent process."""

from __future__ import annotations

import os
import signal
import threading
import time


def end_with_parent(seconds: float) -> None:
    """End this process of `multiprocessing` when its parent ends, even if the parent is killed.

    Args:
        seconds: Seconds from SIGTERM to an immediate exit.
    """
    import multiprocessing  # slow to load, but loaded already in such a process

    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)  # an event loop that is blocked handles no signal
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
