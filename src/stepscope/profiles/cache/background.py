"""Work that goes on after the call that began it: tables are stored while their reader already uses them.

Each piece of work is a thread that the interpreter waits for at its end, so that even a short program finishes it. The
work may start no threads of its own: Python refuses them once the program has ended. The code that computes what a person waits
for says so with `postponed`: what has not begun by then begins afterwards, or when someone needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_running: dict[str, threading.Thread] = {}
_lock = threading.Lock()
_busy = 0  # how many want to have the processors for themselves
_needed: set[str] = set()
_may_begin = threading.Condition()
MOST_POSTPONED = 8  # each is a thread


@contextmanager
def postponed() -> Iterator[None]:
    """While this lasts, only work that a caller waits for begins."""
    global _busy
    with _may_begin:
        _busy += 1
    try:
        yield
    finally:
        with _may_begin:
            _busy -= 1
            _may_begin.notify_all()


def begin_postponed() -> None:
    """Begin what was postponed beside the rest: from here on, that leaves processors idle."""
    with _lock:
        waiting = [name for name, thread in _running.items() if thread.is_alive()]
    with _may_begin:
        _needed.update(waiting)
        _may_begin.notify_all()


def start(key: str, work: Callable[[], None]) -> None:
    """Begin the work, which others can wait for by its key; where there can be no thread, do it now."""
    thread = threading.Thread(target=_run, args=(key, work), name="stepscope-later", daemon=False)
    wait(key)
    try:
        with _lock:
            for done in [name for name, other in _running.items() if not other.is_alive()]:
                del _running[done]
            thread.start()
            _running[key] = thread
    except RuntimeError:  # too many threads, or the interpreter is ending
        work()


def _run(key: str, work: Callable[[], None]) -> None:
    with _may_begin:
        _may_begin.wait_for(lambda: _busy == 0 or key in _needed or len(_running) > MOST_POSTPONED)
        _needed.discard(key)
    work()


def wait(key: str | None = None) -> None:
    """Return when the work with this key is done, or without a key all of it."""
    with _lock:
        wanted = {name: thread for name, thread in _running.items() if key is None or name == key}
    with _may_begin:
        _needed.update(name for name, thread in wanted.items() if thread.is_alive())
        _may_begin.notify_all()
    for name, thread in wanted.items():
        thread.join()
        with _may_begin:
            _needed.discard(name)
