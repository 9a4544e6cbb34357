"""Run something on the main thread soon: PyTorch's collector records the thread that starts it, and only that one can stop it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_waiting: list[Callable[[], None]] = []


def _run(_nothing: Any) -> int:
    while _waiting:
        act = _waiting.pop(0)
        try:
            act()
        except Exception:  # between two instructions of the job, which must not see it
            pass
    return 0


_callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_run)


def soon(act: Callable[[], None]) -> None:
    """Between two instructions of the main thread, as a signal handler would be; later while it is in a long call."""
    _waiting.append(act)
    ctypes.pythonapi.Py_AddPendingCall(_callback, None)
