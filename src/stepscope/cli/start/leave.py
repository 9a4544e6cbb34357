"""The end of a process that has succeeded, without taking the interpreter apart: that would take as long as to start it."""

from __future__ import annotations

import atexit
import os
import sys
import threading


def leave() -> None:
    """End now, as Python would: after all threads that are not daemons, and what is registered for the end."""
    try:
        finish_threads, finish_rest = threading._shutdown, atexit._run_exitfuncs  # type: ignore[attr-defined]
    except AttributeError:  # another Python, which goes its own way
        return
    finish_threads()
    finish_rest()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python's own end says what is wrong with them
        return
    os._exit(0)
