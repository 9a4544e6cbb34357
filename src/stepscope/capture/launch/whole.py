"""What a job gets that shows no loop: all of a short one, and some seconds of a long one.

From its start a process is recorded lightly: by samples of its Python stacks, and once TensorFlow or JAX computes, by its
collector without stacks. If a loop shows, and its steps are recorded, that is thrown away. If the process ends before, it
is the profile. If it goes on without a loop, a window of some seconds is recorded in full, and the job's user is informed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Options
from stepscope.capture.files.published import Published
from stepscope.capture.files.retention import remove_if_empty
from stepscope.capture.launch.on_main_thread import soon
from stepscope.capture.process.framework_use import forget, when_in_use
from stepscope.capture.process.guarded import guarded_thread
from stepscope.capture.process.troubles import Troubles
from stepscope.capture.settings import Settings
from stepscope.capture.window import Window

# For so long a loop may take to show, from the start of the process and, anew, from the first use of a framework: importing it,
# building models and preparing data take their time.
PATIENCE_S = 20.0
_PATIENCE_WITHOUT_USE = 2
_LOOK_AGAIN_S = 0.5
WINDOW_S = 5.0
PATIENCE = "STEPSCOPE_PATIENCE"  # in the environment: another number of seconds
_UNSAFE_BEFORE_FORKS = ("torch",)
_LIGHT = {"stacks": False, "shapes": False, "flops": False, "sync": False}


class Whole:
    """The recording of one process that has shown no loop yet."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._troubles = Troubles()
        wanted = {name: bool(options[name]) for name in ("memory", "shapes", "stacks") if name in options}
        self._settings = Settings(folder=Path(folder).absolute(), options=Options(**wanted))
        self._names: tuple[str, ...] = ()
        self._in_use: tuple[str, ...] = ()
        self._window: Window | None = None
        self._published: list[Published] = []
        self._done = threading.Event()
        self._opened = threading.Event()
        patience = float(os.environ.get(PATIENCE) or PATIENCE_S)
        self._patience = patience
        self._until = time.monotonic() + _PATIENCE_WITHOUT_USE * patience
        self.seconds: float | None = None  # of a window that was recorded instead of the whole
        self._lock = threading.RLock()

    def start(self) -> None:
        """Begin, with whatever is in use."""
        self._open(("host",), self._settings.options)
        when_in_use(self._attach)
        guarded_thread(self._watch, "stepscope-whole")

    @property
    def files(self) -> list[str]:
        """What was written of it."""
        return [str(each.trace) for each in self._published if each.trace is not None]

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What went wrong."""
        return self._troubles.rows()

    def begin_step(self, number: int) -> None:
        """The loop that showed begins a step."""
        if self._window is not None:
            self._window.begin_step(number)

    def end_step(self) -> None:
        """And ends it."""
        if self._window is not None:
            self._window.end_step()

    def finish(self) -> None:
        """Write it: the process ends, or its steps are about to be timed without a profiler."""
        with self._lock:
            self._done.set()
            forget(self._attach)
            window, self._window = self._window, None
        if window is not None:
            self._published = window.finish(_no_steps, {"whole": self.seconds is None})

    def discard(self) -> None:
        """Something better was recorded, or the job records itself."""
        with self._lock:
            self._done.set()
            forget(self._attach)
            window, self._window = self._window, None
        if window is not None:
            window.abandon()
        for each in self._published:
            for path in each.files:
                path.unlink(missing_ok=True)
                # An empty run folder would look like a recording that was never finished.
                if path.parent != self._settings.folder:
                    remove_if_empty(path.parent)
        self._published = []

    def before_fork(self) -> None:
        """Go on with samples alone, which stay out of the child."""
        with self._lock:
            if self._window is None or self._names == ("host",):
                return
            self._window.abandon()
            self._window = None
            forget(self._attach)
            self._open(("host",), self._settings.options)

    def become_inert(self) -> None:
        """In a forked child: the recording is the parent's."""
        self._done.set()
        self._window, self._published = None, []

    def _open(self, names: tuple[str, ...], options: Options) -> None:
        window = Window(replace(self._settings, backends=names, options=options), 0, self._troubles)
        window.start()
        self._names, self._window = names, window

    def _attach(self, name: str) -> None:
        """A framework computes from now on: its own collector takes over.

        Not that of PyTorch: it starts a thread of its own, for which a process that the job forks would wait at its end forever.
        """
        with self._lock:
            window = self._window
            if window is None or name in self._in_use or self._done.is_set():
                return
            self._in_use = (*self._in_use, name)
            self._until = time.monotonic() + self._patience
            if name in _UNSAFE_BEFORE_FORKS:
                return
            window.abandon()
            names = (*(each for each in self._names if each != "host"), name)
            self._open(names, replace(self._settings.options, **_LIGHT))

    def _watch(self) -> None:
        """In a thread of ours: patience ends, then the window does."""
        while (left := self._until - time.monotonic()) > 0 or _is_importing():
            if self._done.wait(max(left, _LOOK_AGAIN_S)):
                return
        soon(self._open_timed)
        self._opened.wait()  # the main thread may be in a long call
        if not self._done.wait(WINDOW_S):
            soon(self._close_timed)

    def _open_timed(self) -> None:
        try:
            self._replace_by_timed()
        finally:
            self._opened.set()

    def _replace_by_timed(self) -> None:
        with self._lock:
            window = self._window
            if window is None or self._done.is_set():
                return
            window.abandon()
            self.seconds = WINDOW_S
            self._open(self._in_use or ("host",), self._settings.options)
        _say(
            f"no training loop so far, after {self._patience:.0f} s: recording {WINDOW_S:.0f} s of the job now, and steps if one begins later. "
            "Call stepscope.step() at the end of the loop's body to record steps."
        )

    def _close_timed(self) -> None:
        self.finish()
        if self.files:
            _say(f"recorded {WINDOW_S:.0f} s of the job into {self._settings.folder}.")


def _say(text: str) -> None:
    """While the job runs; not as a warning, which the job may filter."""
    try:
        sys.stderr.write(f"stepscope: {text}\n")
        sys.stderr.flush()
    except Exception:  # a closed stderr
        pass


def _is_importing() -> bool:
    """Whether the main thread is importing something: a framework takes a minute to import where others want the machine, too."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _no_steps() -> dict[str, Any]:
    return {}
