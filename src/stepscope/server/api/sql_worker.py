"""A process for one query: it reads its order from stdin, opens the run from the cache, and may use only so much memory."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from stepscope.errors import StepscopeError
from stepscope.profiles.find.paths import locate
from stepscope.profiles.find.runs import Run, entry
from stepscope.profiles.load import load_run
from stepscope.profiles.sql.engine import query
from stepscope.server.api.table_view import of_trace

LARGEST_ANSWER = 32 << 20
TOO_LONG = 75  # how the process ends when the query's time is over


class File(msgspec.Struct):
    """One file of the run."""

    path: str
    format_hint: str
    size: int
    mtime_ns: int
    capture: str


class Order(msgspec.Struct):
    """What to run, on what, and within which limits."""

    sql: str
    name: str
    address: str | None
    files: list[File]
    rows: int
    memory_bytes: int
    seconds: float


class Outcome(msgspec.Struct):
    """Rows, or what is wrong with the query."""

    columns: list[dict[str, Any]] = []
    rows: list[Any] = []
    total: int = 0
    truncated: bool = False
    error: str | None = None
    fix: str | None = None


def main() -> None:
    """Answer one order on stdout."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        answer = _encoded(_answered(order))
    except StepscopeError as error:
        answer = msgspec.json.encode(Outcome(error=error.what, fix=error.fix))
    sys.stdout.buffer.write(answer)
    sys.stdout.flush()


def _answered(order: Order) -> Outcome:
    profile = load_run(Run(order.name, tuple(map(_entry, order.files)), order.address))
    _limit(order.memory_bytes)
    _end_after(order.seconds)
    found = query(profile, order.sql)
    view = of_trace(found)
    rows = view.page(None, 0, order.rows)
    return Outcome(view.about(), rows, len(found), len(found) > len(rows))


def _end_after(seconds: float) -> None:
    """The time is the query's: on a busy machine, to start and to open the run takes a while, too."""
    timer = threading.Timer(seconds, os._exit, (TOO_LONG,))
    timer.daemon = True
    timer.start()


def _entry(file: File) -> Any:
    known = {name: getattr(file, name) for name in ("format_hint", "size", "mtime_ns", "capture")}
    return entry(file.path, filesystem=locate(file.path).filesystem, **known)


def _data_bytes() -> int:
    """What the limit counts of this process now. Its largest resident size would be that of the server, which it inherits."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def _limit(memory_bytes: int) -> None:
    """Beyond what loading took. Mapped tables are not counted: the system can drop them."""
    try:
        import resource

        limit = _data_bytes() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (
        ImportError,
        OSError,
        ValueError,
        IndexError,
    ):  # not on this system; the time is bounded all the same
        pass


def _encoded(outcome: Outcome) -> bytes:
    """As JSON; rows are left out at the end until it is no larger than a page can take."""
    while True:
        data = msgspec.json.encode(outcome)
        if len(data) <= LARGEST_ANSWER or not outcome.rows:
            return data
        outcome.rows = outcome.rows[: len(outcome.rows) // 2]
        outcome.truncated = True


if __name__ == "__main__":
    main()
