"""Asking the worker: start it, send it the tables it lacks, take its rows, and end it when it cannot be used any more."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

import msgspec

from stepscope.errors import QueryRefused, StepscopeError
from stepscope.profiles.sql.wire import (
    FAILED,
    GRACE_S,
    TOO_LONG,
    FromWorker,
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
from stepscope.units import size

if TYPE_CHECKING:
    import polars as pl

START_SECONDS = 120.0  # for the process to begin and to take the tables, on a machine that is very busy
IDLE_SECONDS = 300.0
_RUN = "from stepscope.profiles.sql.worker import main; main()"
# What an interpreter may need to start and to find its libraries. Nothing else of the environment gets in.
_KEPT = (
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PYTHONHOME",
    "SYSTEMROOT",
    "POLARS_MAX_THREADS",
    "LANG",
    "LC_ALL",
)


class QueryFailed(StepscopeError):
    """A query that is allowed, but wrong."""


class QueryTooLong(QueryFailed):
    """A query that was ended at its time limit."""


class QueryTooLarge(QueryFailed):
    """A query that needed more memory than it may have."""


@dataclass(frozen=True)
class Answer:
    """The rows that were asked for, and how many there are in all."""

    frame: pl.DataFrame
    rows: int


class Gone(Exception):
    """The worker had ended by itself before it was asked."""


class Worker:
    """One process, for the tables of one profile. It takes one query at a time."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._order: Order | None = None
        self._first: FromWorker | None = None
        self._ready: Ready | None = None
        self._is_used = False
        self._is_too_long = False
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-c", _RUN, str(idle_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            cwd=Path(sys.executable).parent,  # a folder of the user may hold modules named as ours
        )

    @property
    def protections(self) -> list[str]:
        """What the process cannot do any more, in words."""
        if self._ready is None:
            ready = self._next()
            assert isinstance(ready, Ready)
            self._ready = ready
        return self._ready.protections

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def begin(self, order: Order) -> None:
        """Send the order. A query that is refused or not SQL is a StepscopeError now, before any table is needed."""
        self._order, self._first = order, None
        with self._watched(START_SECONDS), self._explained(order):
            _ = self.protections
            send(self._to, order)
            self._first = self._next()
        self._is_used = True
        self._raise_if_wrong(self._first)

    def finish(self, table: Callable[[str], pl.DataFrame]) -> Answer:
        """Give the worker the tables that it lacks, and get the rows."""
        assert self._order is not None
        order, message = self._order, self._first
        wanted = self._wanted(table)
        seconds = None if order.seconds is None else order.seconds + GRACE_S + START_SECONDS
        with self._watched(seconds), self._explained(order):
            if isinstance(message, Wants):
                for name, frame in wanted.items():
                    self._send_table(name, frame)
                message = self._next()
            frame = self._rows(message)
        self._raise_if_wrong(message)
        assert isinstance(message, Outcome)
        return Answer(frame, message.rows)

    def _wanted(self, table: Callable[[str], pl.DataFrame]) -> dict[str, pl.DataFrame]:
        if not isinstance(self._first, Wants):
            return {}
        try:
            return {name: table(name) for name in self._first.tables}
        except BaseException:
            self.close()  # it waits for tables that will never come
            raise

    def _rows(self, message: FromWorker | None) -> pl.DataFrame:
        import polars as pl

        pieces = message.pieces if isinstance(message, Outcome) else 0
        return pl.concat([unpacked(receive(self._from)) for _ in range(pieces)] or [pl.DataFrame()])

    def _send_table(self, name: str, frame: pl.DataFrame) -> None:
        coded, names = _numbered(frame)
        send(self._to, Table(name, names, pieces_of(len(frame))))
        for piece in packed(coded):
            send_bytes(self._to, piece)

    def _next(self) -> FromWorker:
        message: FromWorker = msgspec.msgpack.decode(receive(self._from), type=FromWorker)
        return message

    def _raise_if_wrong(self, message: FromWorker | None) -> None:
        if not isinstance(message, Outcome) or message.kind == "rows":
            return
        assert self._order is not None
        if message.kind == "too-long":
            raise _too_long(self._order)
        if message.kind == "too-large":
            raise _too_large(self._order)
        raise (QueryRefused if message.kind == "refused" else QueryFailed)(message.what, fix=message.fix)

    @contextmanager
    def _watched(self, seconds: float | None) -> Iterator[None]:
        """End the process if it takes longer than it can take."""
        timer = threading.Timer(seconds, self._end_late) if seconds is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def _end_late(self) -> None:
        self._is_too_long = True
        self._process.kill()

    @contextmanager
    def _explained(self, order: Order) -> Iterator[None]:
        """A process that ends in the middle of it was ended for its time, or else for its memory."""
        try:
            yield
        except (EOFError, OSError):
            code = self._exit_code()
            if self._first is None and self._is_used:
                raise Gone from None
            if self._ready is None and not self._is_too_long:
                raise _not_started() from None
            if code == FAILED:
                raise QueryFailed("The SQL engine cannot run this query.") from None
            raise (_too_long if self._is_too_long or code == TOO_LONG else _too_large)(order) from None
        except BaseException:
            self.close()  # who knows what it waits for now
            raise

    def _exit_code(self) -> int:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self.close()
        return self._process.returncode

    @property
    def _to(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _from(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._to, self._from):
            with suppress(OSError):
                stream.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Workers:
    """Processes that are kept for the next query: a limited number, each with the tables of one profile."""

    def __init__(self, most: int) -> None:
        self._idle: list[tuple[str, Worker]] = []  # the one that was used longest ago comes first
        self._lock = threading.Lock()
        self._most = most
        self._busy = 0
        self._free = threading.BoundedSemaphore(most)
        atexit.register(self.close)

    def ask(
        self, key: str, order: Order, table: Callable[[str], pl.DataFrame], patience: float
    ) -> Answer | None:
        """The rows of the query over the profile with this key; None if all are busy for longer than one should wait."""
        if not self._free.acquire(timeout=patience):
            return None
        try:
            return self._asked(f"{key} {order.memory_bytes}", order, table)
        finally:
            self._free.release()

    def _asked(self, key: str, order: Order, table: Callable[[str], pl.DataFrame]) -> Answer:
        worker = self._taken(key)
        try:
            try:
                worker.begin(order)
            except Gone:  # nobody had asked it for a while
                worker = Worker()
                worker.begin(order)
            return worker.finish(table)
        finally:
            self._give_back(key, worker)

    def _taken(self, key: str) -> Worker:
        with self._lock:
            self._busy += 1
            self._idle = [(name, worker) for name, worker in self._idle if worker.is_alive]
            place = next((at for at, (name, _) in enumerate(self._idle) if name == key), None)
            if place is not None:
                return self._idle.pop(place)[1]
            dropped = [self._idle.pop(0)[1] for _ in range(len(self._idle) + self._busy - self._most)]
        for worker in dropped:
            worker.close()
        return Worker()

    def _give_back(self, key: str, worker: Worker) -> None:
        with self._lock:
            self._busy -= 1
            if worker.is_alive:
                self._idle.append((key, worker))

    def close(self) -> None:
        """End those that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, worker in idle:
            worker.close()


def _numbered(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """The frame with names as numbers, and what they stand for: else each piece would carry all names of this process."""
    import polars as pl

    names = {}
    for column, dtype in frame.schema.items():
        if isinstance(dtype, pl.Categorical | pl.Enum):
            values = frame[column]
            known = values.unique().drop_nulls()
            numbers = pl.DataFrame(
                {"code": known.to_physical(), "number": pl.int_range(len(known), dtype=pl.UInt32, eager=True)}
            )
            codes = values.to_physical().alias("code").to_frame()
            found = codes.join(numbers, on="code", how="left", maintain_order="left")["number"]
            frame = frame.with_columns(found.alias(column))
            names[column] = known.cast(pl.String).to_list()
    return frame, names


def _not_started() -> StepscopeError:
    return StepscopeError(
        "The process that runs queries does not start.",
        fix="It needs duckdb 1.4 or newer. Try: pip install -U duckdb",
    )


def _too_long(order: Order) -> QueryTooLong:
    return QueryTooLong(
        f"The query took longer than {order.seconds or START_SECONDS:g} seconds and was ended.",
        fix="Select less: add a WHERE or a LIMIT, and join on columns rather than crossing tables.",
    )


def _too_large(order: Order) -> QueryTooLarge:
    limit = (
        f" more than {size(order.memory_bytes)} of memory"
        if order.memory_bytes
        else " more memory than there is"
    )
    return QueryTooLarge(
        f"The query was ended: it needs{limit}.",
        fix="Select less: add a WHERE or a LIMIT, and join on columns rather than crossing tables.",
    )


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 (links stay; an empty one is this folder)
    return {**kept, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}
