"""Connections of waitress with deadlines and shares, so that slow clients cannot shut others out.

Waitress closes a connection only when nothing at all happens on it, and accepts no more once there are too many: some hundred
clients that send a byte a second would keep everyone else waiting. Here a request must arrive in time, an answer must be
taken at a pace, and a newcomer that finds no room takes the place of the client that has made no use of its own for longest.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

CONNECTIONS = 200
PER_CLIENT = CONNECTIONS // 2  # no client has them all, whatever it does with its own
HEAD_S = 10.0
BODY_S = 30.0
IDLE_S = 60.0
PACE_S = 30.0
PACE_BYTES = 16 << 10  # to be taken in each PACE_S while an answer waits
_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_clock = time.monotonic


class Channel(HTTPChannel):
    """A connection that knows how long its client takes."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.used = _clock()  # when it came, or when a request of it was last complete or being answered
        self.has_asked = False
        self._begun: float | None = None  # when the first byte came of a request that is not complete
        self._taken = 0
        self._pace_since: float | None = None
        self._pace_from = 0
        self._was_late = False
        super().__init__(*given, **named)

    @property
    def client(self) -> str:
        """The address of the other end."""
        return str(self.addr[0])

    @property
    def is_working(self) -> bool:
        """Whether a request of it is being answered."""
        return bool(self.requests)

    @property
    def is_sending(self) -> bool:
        """Whether a part of an answer waits to be taken."""
        return bool(self.total_outbufs_len)

    def received(self, data: bytes) -> bool:
        """Notes when a request begins."""
        before = self.request
        taken = bool(super().received(data))
        if self.request is None:
            self._begun = None
        elif self.request is not before:
            self._begun = _clock()
        return taken

    def note_request(self) -> None:
        """A request is complete. Empty lines, which waitress takes for requests to be left out, do not get here."""
        self.used, self.has_asked = _clock(), True

    def send(self, data: bytes, do_close: bool = True) -> int:
        """Counts what the client takes."""
        sent = int(super().send(data, do_close))
        self._taken += sent
        return sent

    def is_overdue(self, now: float) -> bool:
        """Whether it was late at this look and at the one before: what came meanwhile is read between the two."""
        is_late = self._is_late(now)
        is_overdue = is_late and self._was_late
        self._was_late = is_late
        return is_overdue

    def hang_up(self) -> None:
        """End it. The main loop closes it: a client that takes nothing would never be writable, but one that is shut down is."""
        self.will_close = True
        if self.socket is None:
            return
        with suppress(OSError):
            if self._begun is not None and not self.is_working and not self.is_sending:
                self.socket.send(_LATE)
            self.socket.shutdown(socket.SHUT_RDWR)

    def _is_late(self, now: float) -> bool:
        if self.is_sending or self.is_working:
            self.used = now
        if self.is_sending:
            return self._takes_too_slowly(now)
        self._pace_since = None
        if self.is_working:
            return False
        if self._begun is None:
            return now - self.used > (IDLE_S if self.has_asked else HEAD_S)
        has_head = self.request is not None and self.request.headers_finished
        return now - self._begun > (HEAD_S + BODY_S if has_head else HEAD_S)

    def _takes_too_slowly(self, now: float) -> bool:
        if self._pace_since is None:
            self._pace_since, self._pace_from = now, self._taken
        if now - self._pace_since < PACE_S:
            return False
        if self._taken - self._pace_from < PACE_BYTES:
            return True
        self._pace_since, self._pace_from = now, self._taken
        return False


class Server(TcpWSGIServer):
    """Waitress over one socket that is bound already."""

    channel_class = Channel

    def __init__(self, app: Callable[..., Any], bound: socket.socket, threads: int, **settings: Any) -> None:
        # Room is made here: waitress itself would stop accepting, which is what a slow crowd wants.
        adj = Adjustments(
            sockets=[bound],
            threads=threads,
            connection_limit=2 * CONNECTIONS,
            cleanup_interval=1,
            clear_untrusted_proxy_headers=True,
            **settings,
        )
        dispatcher = ThreadedTaskDispatcher()
        dispatcher.set_thread_count(threads)
        known = (bound.family, bound.type, bound.proto, bound.getsockname())
        super().__init__(
            app, {}, _sock=bound, dispatcher=dispatcher, adj=adj, sockinfo=known, bind_socket=False
        )

    def add_task(self, task: Any) -> None:
        """Called with the channel of each request that is complete."""
        task.note_request()
        super().add_task(task)

    def maintenance(self, now: float) -> None:
        """Every second: hang up on those that take too long."""
        at = _clock()
        for channel in self._open():
            if channel.is_overdue(at):
                channel.hang_up()

    def handle_accept(self) -> None:
        """Take the newcomer in, and make room if that is one too many."""
        super().handle_accept()
        channels = self._open()
        newest = next(reversed(channels), None)
        if newest is None:
            return
        of_client = [channel for channel in channels if channel.client == newest.client]
        if len(of_client) > PER_CLIENT:
            _least_used(of_client, newest).hang_up()
        elif len(channels) > CONNECTIONS:
            _least_used(channels, newest).hang_up()

    def _open(self) -> list[Channel]:
        channels: dict[int, Channel] = self.active_channels  # type: ignore[assignment]
        return [channel for channel in channels.values() if not channel.will_close]


def _least_used(channels: list[Channel], newest: Channel) -> Channel:
    """Who goes: never a request that is being answered; the newcomer if all others are."""
    waiting = [channel for channel in channels if not channel.is_working and channel is not newest]
    if not waiting:
        return newest
    return min(waiting, key=lambda channel: (channel.is_sending, channel.has_asked, channel.used))
