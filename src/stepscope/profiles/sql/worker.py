"""The process that runs queries. It gives up files and network first, and gets its tables through a pipe.

It keeps the tables of the profile it was asked about last, and ends when its parent does, after a while without requests, or
when a query outlasts its time although it was interrupted.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import msgspec

from stepscope.profiles.sql import sandbox
from stepscope.profiles.sql.wire import (
    FAILED,
    GRACE_S,
    TOO_LONG,
    Order,
    Outcome,
    Ready,
    Table,
    Wants,
    packed,
    pieces_of,
    receive,
    send,
    send_bytes,
    unpacked,
)

if TYPE_CHECKING:
    import polars as pl

    from stepscope.profiles.sql.engine import Database

_SPARE_BYTES = 256 << 20  # for threads and for rows on their way out, beyond what the engine counts
_MESSAGES_AHEAD = 4
_STATUS = "/proc/self/status"


def main() -> None:
    """Give up what queries must not reach, then answer orders until the parent ends."""
    idle_seconds = float(sys.argv[1])
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which then ends us
    answers = _own_stdout()
    protections = sandbox.give_up_writing()
    from stepscope.profiles.sql import engine

    _warm_up()
    database, memory = engine.Database(), _Memory()
    protections += [*sandbox.give_up_files(), engine.PROTECTION]
    send(answers, Ready(protections))
    try:
        _Worker(_Inbox(sys.stdin.buffer), answers, database, memory).serve(idle_seconds)
    except Exception:  # nobody can see a traceback from here; the one who asked is told that it failed
        os._exit(FAILED)


def _own_stdout() -> IO[bytes]:
    """What libraries print must not get between our messages."""
    own = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(own, "wb")


def _warm_up() -> None:
    """Go through everything once, since Python imports much of it on first use and can open no file later."""
    import polars as pl

    from stepscope.profiles.sql.engine import Database

    database = Database()
    frame = pl.DataFrame({"id": [1], "name": [0], "bytes": [b""], "grid": [[1, 2, 3]]})
    database.put(Table("events", {"name": ["a"]}, 1), map(unpacked, map(bytes, packed(frame))))
    database.lock(1, None)
    for sql in (
        "SELECT *, SUM(id) OVER () AS s, NOW() FROM events",
        "SELECT nothing FROM events",
        "SELECT nothing()",
    ):
        database.named(sql)
        _, found = database.answer(Order(sql))
        if found is not None:
            list(packed(found))
    database.check("nothing")
    database.close()


class _Inbox:
    """Messages as they come. A parent that has ended ends us, also in the middle of a query."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._messages: queue.Queue[bytes] = queue.Queue(_MESSAGES_AHEAD)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self._messages.put(receive(self._stream))
        except (EOFError, OSError):
            os._exit(0)

    def next(self, timeout: float | None = None) -> bytes:
        """The next message; queue.Empty if none comes in time."""
        return self._messages.get(timeout=timeout)


class _Memory:
    """A bound for one query, beyond what the process has when it begins. Only Linux can bind it for good."""

    def __init__(self) -> None:
        try:
            self._status = os.open(_STATUS, os.O_RDONLY)
        except OSError:
            self._status = -1

    @contextmanager
    def limited(self, memory_bytes: int | None) -> Iterator[None]:
        """While this lasts."""
        if memory_bytes is None or self._status < 0 or sandbox.resource is None:
            yield
            return
        _, most = sandbox.resource.getrlimit(sandbox.resource.RLIMIT_DATA)
        sandbox.resource.setrlimit(
            sandbox.resource.RLIMIT_DATA, (self._held() + memory_bytes + _SPARE_BYTES, most)
        )
        try:
            yield
        finally:
            sandbox.resource.setrlimit(sandbox.resource.RLIMIT_DATA, (most, most))

    def _held(self) -> int:
        status = os.pread(self._status, 1 << 16, 0).decode("ascii", "replace")
        return int(status.partition("VmData:")[2].split()[0]) * 1024


class _Worker:
    """Answers one order after the other, all about the same profile."""

    def __init__(self, inbox: _Inbox, answers: IO[bytes], database: Database, memory: _Memory) -> None:
        self._inbox = inbox
        self._answers = answers
        self._database = database
        self._memory = memory
        self._is_locked = False

    def serve(self, idle_seconds: float) -> None:
        """Until no request comes any more."""
        while True:
            try:
                order = msgspec.msgpack.decode(self._inbox.next(idle_seconds), type=Order)
            except queue.Empty:
                os._exit(0)
            outcome, rows = self._answered(order)
            if rows is not None:
                outcome.pieces = pieces_of(len(rows))
            send(self._answers, outcome)
            for piece in packed(rows) if rows is not None else ():
                send_bytes(self._answers, piece)
            if self._database.is_broken:
                os._exit(FAILED)

    def _answered(self, order: Order) -> tuple[Outcome, pl.DataFrame | None]:
        if not self._is_locked:
            self._database.lock(order.threads, order.memory_bytes)
            self._is_locked = True
        wrong = self._database.check(order.sql)
        if wrong is not None:
            return wrong, None
        self._take_tables(order.sql)
        with self._memory.limited(order.memory_bytes), _ended_after(order.seconds):
            return self._database.answer(order)

    def _take_tables(self, sql: str) -> None:
        """Ask for the tables that the query names and that are not there yet."""
        wanted = sorted(self._database.named(sql).difference(self._database.tables))
        if wanted:
            send(self._answers, Wants(wanted))
        for _ in wanted:
            table = msgspec.msgpack.decode(self._inbox.next(), type=Table)
            self._database.put(table, (unpacked(self._inbox.next()) for _ in range(table.pieces)))


@contextmanager
def _ended_after(seconds: float | None) -> Iterator[None]:
    """The engine is interrupted in time; should it not listen, the process ends."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds + GRACE_S, os._exit, (TOO_LONG,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


if __name__ == "__main__":
    main()
