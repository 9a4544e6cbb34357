"""`stepscope.listen()`: let `stepscope capture` record from this process at any time, through a socket for its own user only."""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import os
import queue
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.capture.loop.loop import Loop
from stepscope.capture.loop.sources import watch
from stepscope.capture.process import active
from stepscope.capture.process.guarded import guarded_thread
from stepscope.capture.process.threads import list_stacks
from stepscope.capture.process.troubles import tell
from stepscope.capture.remote import sockets
from stepscope.capture.remote.orders import Order
from stepscope.capture.remote.stack_signal import StackSignal

# Options of a Profiler that may come from outside.
_OPTIONS = ("memory", "shapes", "stacks", "flops")
_MOST_STEPS = 10_000
# Whoever calls may be stopped for a while, by a busy machine or by Ctrl+Z, before it says what it wants.
_PATIENCE_SECONDS = 60
# What goes by: too many open files, no memory, a caller that gave up at once.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ECONNABORTED, errno.EINTR)
_PAUSE_SECONDS = 0.2
_MOST_FAULTS = 20
_listener: Listener | None = None


def listen() -> str | None:
    """Open the socket, once, and return its address. Steps are detected as by `stepscope run`. None, with a warning, if it fails."""
    global _listener
    if _listener is None:
        _listener = Listener()
        watch(_loop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_listener.forget_in_child)
    return _listener.open()


def _loop() -> Loop | None:
    return None if _listener is None else _listener.loop


class Listener:
    """One process: its socket, the steps of its loop, and the order that is being carried out."""

    def __init__(self) -> None:
        self.loop = Loop(self._begin, self._loop_step)
        self._socket: socket.socket | None = None
        self._path: Path | None = None
        self._pid = 0
        self._number = 0
        self._order: Order | None = None
        self._past: Order | None = None
        self._caller: socket.socket | None = None
        self._lock = threading.Lock()
        self._first_step: Callable[[], None] | None = None
        self._faults: list[str] = []
        self._signal = StackSignal()

    def open(self) -> str | None:
        """Listen from now on."""
        if self._pid == os.getpid():
            return None if self._path is None else str(self._path)
        self._pid = os.getpid()
        try:
            self._path = sockets.own_folder() / f"{self._pid}{sockets.ENDING}"
            self._socket = sockets.opened(self._path)
            if guarded_thread(self._accept, "stepscope-listen", self._failed) is None:
                raise RuntimeError("no thread could be started")
        except (OSError, RuntimeError) as error:
            tell(f"`stepscope capture` will not reach this process: {type(error).__name__}: {error}")
            self._path = None
            return None
        self._catch_signal(self._path.parent)
        if active.first_step != self._first_call:
            self._first_step, active.first_step = active.first_step, self._first_call
        atexit.register(self.close)
        return str(self._path)

    def _catch_signal(self, folder: Path) -> None:
        """For a job that hangs inside C. Without it the socket alone answers."""
        try:
            self._signal.open(folder)
        except Exception as error:  # never the job's concern
            self._failed(error)

    def close(self) -> None:
        """The process ends: so does an order, and the socket goes away."""
        if self._pid != os.getpid():
            return
        try:
            for order in (self._past, self._order):
                if order is not None:
                    order.end()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
            self._signal.close()
        except Exception as error:  # Python would print it at exit
            self._failed(error)

    def forget_in_child(self) -> None:
        """A forked child has none of our threads; if it turns out to train, it opens a socket of its own."""
        if self._socket is not None:
            self._socket.close()
        self._signal.forget_in_child()
        for order in (self._order, self._past):
            if order is not None:
                order.become_inert()
        self._past = self._caller = None
        self._socket, self._path, self._order, self._number = None, None, None, 0
        self._lock = threading.Lock()
        self.loop = Loop(self._begin, self._loop_step)
        active.on_step = None

    # ---- in the loop's thread

    def _begin(self) -> None:
        self._number = 0
        if self._pid != os.getpid():
            self.open()

    def _first_call(self) -> None:
        """`stepscope.step()` while no Profiler runs."""
        if self._first_step is not None:
            self._first_step()
        if active.profiler is None and self.loop.called():
            self._loop_step()

    def _loop_step(self) -> None:
        """A step that the Loop found; where a Profiler runs, it is that one's steps that count."""
        self._number += 1
        if active.profiler is None:
            self._step(self._number)

    def _step(self, number: int) -> None:
        try:
            self._carry_out(number)
        except Exception as error:
            self._failed(error)
            self._past = self._order = active.on_step = None

    def _carry_out(self, number: int) -> None:
        past, self._past = self._past, None
        if past is not None:
            past.end()
        order = self._order
        host = active.profiler
        if order is None or (host is not None and host.is_recording and not order.has_begun):
            return
        order.step(number)
        if order.is_over:
            with self._lock:
                self._order, active.on_step = None, None

    # ---- in threads of our own

    def _accept(self) -> None:
        listening = self._socket
        while listening is not None and listening is self._socket:
            try:
                connection, _ = listening.accept()
            except OSError as error:
                if error.errno not in _PASSING:
                    return
                self._failed(error)
                time.sleep(_PAUSE_SECONDS)
                continue
            serve = functools.partial(self._serve, connection)
            if guarded_thread(serve, "stepscope-order", self._failed) is None:
                connection.close()

    def _failed(self, error: BaseException) -> None:
        """The next client gets the error, not the job."""
        text = f"{type(error).__name__}: {error}"
        if text not in self._faults and len(self._faults) < _MOST_FAULTS:
            self._faults.append(text)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                if sockets.caller(connection) not in (None, os.getuid(), 0):
                    return
                connection.settimeout(_PATIENCE_SECONDS)
                for request in sockets.lines(connection):
                    if request.get("verb") == "capture":
                        self._capture(connection, request)
                    elif request.get("verb") == "stacks":
                        sockets.send(connection, rank=os.environ.get("RANK"), threads=list_stacks())
                    else:
                        sockets.send(connection, **self._status())
            except OSError:  # whoever called has hung up
                return
            except Exception as error:
                self._failed(error)
                with contextlib.suppress(OSError):
                    sockets.send(
                        connection, state="refused", why=f"it failed: {type(error).__name__}: {error}"
                    )

    def _status(self) -> dict[str, Any]:
        host = active.profiler
        return {
            "pid": os.getpid(),
            "rank": os.environ.get("RANK"),
            "step": self._number if host is None else host.number,
            "is_recording": self._order is not None or (host is not None and host.is_recording),
            "command": list(getattr(sys, "orig_argv", sys.argv)),
            "faults": list(self._faults),
        }

    def _capture(self, connection: socket.socket, request: dict[str, Any]) -> None:
        steps = min(max(1, int(request.get("steps", 5))), _MOST_STEPS)
        options = {
            name: bool(request["options"][name]) for name in _OPTIONS if name in request.get("options", {})
        }
        order = Order(str(request["folder"]), steps, int(request.get("first", 0)), options)
        if not self._take(order, connection):
            sockets.send(connection, state="refused", why="it is recording for someone else already")
            return
        try:
            sockets.send(connection, state="waiting", **self._status())
            self._tell_news(connection, order)
        finally:
            self._drop(order)

    def _tell_news(self, connection: socket.socket, order: Order) -> None:
        """Until the order is carried out, or its client has hung up."""
        while True:
            try:
                news = order.news.get(timeout=0.2)
            except queue.Empty:
                if _has_hung_up(connection):
                    return
                continue
            sockets.send(connection, **news)
            if news["state"] == "done":
                return

    def _take(self, order: Order, caller: socket.socket) -> bool:
        with self._lock:
            held = self._order
            if held is not None and not held.is_recorded and not self._is_given_up(held):
                return False
            self._past = held if held is not None and held.has_begun else None
            self._order, self._caller = order, caller
            active.on_step = self._step
            host = active.profiler
        if host is not None:
            host.hear_on_step()
        return True

    def _is_given_up(self, held: Order) -> bool:
        """Not begun, and its client has hung up; the thread that serves them may not have noticed yet."""
        return not held.has_begun and (self._caller is None or _has_hung_up(self._caller))

    def _drop(self, order: Order) -> None:
        """No client waits for it any more: it does not start. What has started is carried out."""
        with self._lock:
            if self._order is order and not order.has_begun:
                self._order, active.on_step = None, None


def _has_hung_up(connection: socket.socket) -> bool:
    look = select.poll()  # select() knows no file numbers beyond 1023, and a job may have many files open
    try:
        look.register(connection, select.POLLIN)
        return bool(look.poll(0)) and not connection.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):  # broken, or closed already
        return True
