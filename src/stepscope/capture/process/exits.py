"""The ways a job ends without calling stop(): the interpreter's end, and SIGTERM. The exit status stays what it would be."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Exits:
    """Calls `finish` when the job ends on its own. Handlers that were there before are kept and called.

    `is_ending`: the job ends, or has failed; nothing new is to be started.
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish = finish
        self.is_ending = False
        self._before: Any = None
        self._is_installed = False

    def watch(self) -> None:
        """From now on."""
        self.is_ending = False
        atexit.register(self._end)
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            before = signal.getsignal(signal.SIGTERM)
            if before is None or before is signal.SIG_IGN:  # set from C, or the job does not want to end
                return
            signal.signal(signal.SIGTERM, self._on_sigterm)
        except (ValueError, OSError):
            return
        self._before, self._is_installed = before, True

    def unwatch(self) -> None:
        """No more. A handler that someone put over ours stays, and so does ours below it."""
        atexit.unregister(self._end)
        if not self._is_installed or threading.current_thread() is not threading.main_thread():
            return
        try:
            if signal.getsignal(signal.SIGTERM) == self._on_sigterm:
                signal.signal(signal.SIGTERM, self._before)
        except (ValueError, OSError):
            pass
        self._is_installed = False

    def _end(self) -> None:
        self.is_ending = True
        self._finish()

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        try:
            self._end()
        finally:
            if callable(self._before):
                self._before(number, frame)
            else:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
