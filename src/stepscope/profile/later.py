"""Work that goes on after the call that began it: tables are stored while their reader already uses them.

Each piece of work is a thread that the interpreter waits for at its end, so that even a short program finishes it. The
work may start no threads of its own: Python refuses them once the program has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_running: dict[str, threading.Thread] = {}
_lock = threading.Lock()


def start(key: str, work: Callable[[], None]) -> None:
    """Begin the work, which others can wait for by its key; where there can be no thread, do it now."""
    thread = threading.Thread(target=work, name="stepscope-later", daemon=False)
    wait(key)
    try:
        with _lock:
            for done in [name for name, other in _running.items() if not other.is_alive()]:
                del _running[done]
            thread.start()
            _running[key] = thread
    except RuntimeError:  # too many threads, or the interpreter is ending
        work()


def wait(key: str | None = None) -> None:
    """Return when the work with this key is done, or without a key all of it."""
    with _lock:
        wanted = [thread for name, thread in _running.items() if key is None or name == key]
    for thread in wanted:
        thread.join()
