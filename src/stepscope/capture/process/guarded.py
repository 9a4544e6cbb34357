"""Threads of our own, whose errors must not reach the job: Python would print them on its stderr."""

from __future__ import annotations

import threading
from collections.abc import Callable

_MOST_FAULTS = 20
_faults: list[tuple[str, BaseException]] = []


def guarded_thread(
    target: Callable[[], None], name: str, failed: Callable[[BaseException], None] | None = None
) -> threading.Thread | None:
    """A daemon that has started; None where the process may have no more. What it raises goes to `failed`, or is kept."""

    def run() -> None:
        try:
            target()
        except BaseException as error:
            try:
                (failed or keep)(error)
            except BaseException:  # whoever keeps the faults is at fault: nobody is left to tell
                return

    def keep(error: BaseException) -> None:
        if len(_faults) < _MOST_FAULTS:
            _faults.append((name, error))

    try:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
    except RuntimeError:  # no more threads, or the interpreter is ending
        return None
    return thread


def taken_faults() -> list[tuple[str, BaseException]]:
    """The faults since the last time, with the names of their threads."""
    found = _faults[:]
    del _faults[: len(found)]
    return found
