"""Values that are computed once for all requests, kept while there is room, and made in the background where they take long."""

from __future__ import annotations

import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, cast

import msgspec
import polars as pl

from stepscope.server.http.request import Refused

T = TypeVar("T")

# Answers that take no longer are given at once; for others the page asks again. Who comes later to the same question
# waits less: a thread that waits answers nobody else.
PATIENCE_S = 0.4
PATIENCE_OF_OTHERS_S = 0.05

_DEEPEST = 6  # how far down the size of a value is looked for


@dataclass(frozen=True)
class Limits:
    """How much may be held: runs, bytes, values kept for one run, and things being loaded or computed."""

    runs: int = 16
    bytes: int = 4 << 30
    kept_of_run: int = 200
    waiting: int = 64
    workers: int = 2


@dataclass
class Progress:
    """How far a load or an analysis is; `total` is 0 where it is unknown."""

    stage: str
    done: int = 0
    total: int = 0


class NotYet(Exception):
    """The answer is being prepared: ask again."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(progress.stage)
        self.progress = progress


class Workers:
    """A few threads for loads and analyses, and a bounded queue in front of them."""

    def __init__(self, limits: Limits) -> None:
        self._pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="stepscope-serve")
        self._most = limits.waiting
        self._waiting = 0
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """The future value; Refused when too much is asked for already."""
        with self._lock:
            if self._waiting >= self._most:
                raise Refused("The server is busy.", status=429, fix="Try again in a moment.")
            self._waiting += 1
        try:
            return self._pool.submit(self._counted, work)
        except RuntimeError:  # it was closed
            raise Refused("The server is about to end.", status=410) from None

    def _counted(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            with self._lock:
                self._waiting -= 1

    def close(self) -> None:
        """Take no more work; what has begun goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def in_time(future: Future[T], progress: Progress, is_first: bool) -> T:
    """What the future gives, or NotYet."""
    try:
        return future.result(PATIENCE_S if is_first else PATIENCE_OF_OTHERS_S)
    except NotInTime:
        if future.done():  # the work itself ran out of some time
            raise
        raise NotYet(progress) from None


@dataclass
class _Kept:
    value: Any
    bytes: int


class Values:
    """Values by name; the one not asked for longest goes first. `noted` is called when there is another one."""

    def __init__(self, workers: Workers, most: int, noted: Callable[[], None] = lambda: None) -> None:
        self._workers = workers
        self._most = most
        self._noted = noted
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._pending: dict[str, tuple[Future[Any], Progress]] = {}
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """The value of this name: made by the first request while others wait."""
        with self._lock:
            found = self._get(name)
            if found is not None:
                return cast("T", found.value)
            making = self._making.setdefault(name, threading.Lock())
        with making:
            with self._lock:
                found = self._get(name)
            if found is not None:
                return cast("T", found.value)
            try:
                value = make()
                self._keep(name, value)
            finally:
                with self._lock:
                    self._making.pop(name, None)
        self._noted()
        return value

    def later(self, name: str, make: Callable[[], T], stage: str = "analysing") -> T:
        """The same by a thread of the workers: NotYet where it takes longer than a page should wait."""
        with self._lock:
            found = self._get(name)
            if found is not None:
                return cast("T", found.value)
            is_first = name not in self._pending
            if is_first:
                future = self._workers.submit(lambda: self._finish(name, make))
                self._pending[name] = future, Progress(stage)
            future, progress = self._pending[name]
        value: T = in_time(future, progress, is_first)
        return value

    def soon(self, name: str, make: Callable[[], T], after_s: float = 0.0) -> None:
        """Begin with a value that will be asked for; where too much is going on, the first request begins it.

        `after_s` leaves the processors to what was asked for just now.
        """
        with self._lock:
            if name in self._kept or name in self._pending:
                return
        if after_s:
            later = threading.Timer(after_s, self.soon, (name, make))
            later.daemon = True
            later.start()
            return
        with self._lock:
            if name in self._kept or name in self._pending:
                return
            try:
                self._pending[name] = (
                    self._workers.submit(lambda: self._finish(name, make)),
                    Progress("analysing"),
                )
            except Refused:
                pass

    @property
    def bytes(self) -> int:
        """Of all that is kept."""
        with self._lock:
            return sum(each.bytes for each in self._kept.values())

    def forget_oldest(self) -> bool:
        """Let go of the value that was not asked for longest; False if there is but one."""
        with self._lock:
            if len(self._kept) <= 1:
                return False
            self._kept.popitem(last=False)
            return True

    def _get(self, name: str) -> _Kept | None:
        found = self._kept.get(name)
        if found is not None:
            self._kept.move_to_end(name)
        return found

    def _finish(self, name: str, make: Callable[[], T]) -> T:
        try:
            return self.kept(name, make)
        finally:
            with self._lock:
                self._pending.pop(name, None)

    def _keep(self, name: str, value: Any) -> None:
        with self._lock:
            self._kept[name] = _Kept(value, size_of(value))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def size_of(value: Any, depth: int = 0) -> int:
    """The bytes of frames, buffers and containers of them; other objects count as what Python says of them."""
    if isinstance(value, pl.DataFrame | pl.Series):
        return int(value.estimated_size())
    if isinstance(getattr(value, "nbytes", None), int):
        return int(value.nbytes)
    if isinstance(value, bytes | bytearray | str | array):
        return sys.getsizeof(value)
    if depth >= _DEEPEST:
        return sys.getsizeof(value)
    own = sys.getsizeof(value)
    if isinstance(value, Mapping):
        return own + sum(size_of(each, depth + 1) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return own + sum(size_of(each, depth + 1) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return own + sum(size_of(getattr(value, each.name, None), depth + 1) for each in fields(value))
    if isinstance(value, msgspec.Struct):
        return own + sum(size_of(getattr(value, name, None), depth + 1) for name in value.__struct_fields__)
    return own
