"""Runs that are open: loaded once for all who ask, bounded in number and bytes, the least recently used let go first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from stepscope.errors import StepscopeError
from stepscope.profile.load import load_run
from stepscope.profile.profile import Profile
from stepscope.server.listed import ListedRun
from stepscope.server.request import Refused
from stepscope.server.sizes import size_of
from stepscope.trace.schema import TABLES

T = TypeVar("T")

# Answers that take no longer are given at once; for others the page asks again.
PATIENCE_S = 0.4
CHECK_EVERY_S = 1.0
CHECK_REMOTE_EVERY_S = 30.0


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
    """How far a load or an analysis is; `total` is 0 where nobody knows."""

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
        return self._pool.submit(self._counted, work)

    def _counted(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            with self._lock:
                self._waiting -= 1

    def close(self) -> None:
        """Take no more work; what has begun goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _Kept:
    value: Any
    bytes: int


class OpenedRun:
    """A loaded profile and what was computed of it. `key` changes when the files' content does."""

    def __init__(self, listed: ListedRun, profile: Profile, key: str, workers: Workers, room: Room) -> None:
        self.listed = listed
        self.profile = profile
        self.key = key
        self._workers = workers
        self._room = room
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._pending: dict[str, tuple[Future[Any], Progress]] = {}
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._tables_bytes = sum(
            int(trace.tables[name].estimated_size())
            for trace in profile.traces
            for name in TABLES
            if isinstance(trace.tables, dict)
        )

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """The value of this name: made by whoever asks first while others wait, and kept while there is room."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
                return cast("T", found.value)
            making = self._making.setdefault(name, threading.Lock())
        with making:
            with self._lock:
                found = self._kept.get(name)
            if found is not None:
                return cast("T", found.value)
            value = make()
            self._keep(name, value)
        return value

    def later(self, name: str, make: Callable[[], T], stage: str = "analysing") -> T:
        """The same by a thread of its own: NotYet where it takes longer than a page should wait."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
                return cast("T", found.value)
            if name not in self._pending:
                self._pending[name] = (
                    self._workers.submit(lambda: self._finish(name, make)),
                    Progress(stage),
                )
            future, progress = self._pending[name]
        try:
            return cast("T", future.result(PATIENCE_S))
        except NotInTime:
            if future.done():
                raise
            raise NotYet(progress) from None

    def _finish(self, name: str, make: Callable[[], T]) -> T:
        try:
            return self.kept(name, make)
        finally:
            with self._lock:
                self._pending.pop(name, None)

    def _keep(self, name: str, value: Any) -> None:
        with self._lock:
            self._kept[name] = _Kept(value, size_of(value))
            self._making.pop(name, None)
            while len(self._kept) > self._room.limits.kept_of_run:
                self._kept.popitem(last=False)
        self._room.make()

    @property
    def bytes(self) -> int:
        """What it takes in memory. Tables mapped from the cache are the system's to drop, and do not count."""
        with self._lock:
            return self._tables_bytes + sum(each.bytes for each in self._kept.values())

    def forget_oldest(self) -> bool:
        """Let go of the value that was not asked for longest; False if there is but one."""
        with self._lock:
            if len(self._kept) <= 1:
                return False
            self._kept.popitem(last=False)
            return True


@dataclass
class _Load:
    """One run on its way in: its future, or why it failed, for the content with this key."""

    key: str
    progress: Progress = field(default_factory=lambda: Progress("reading"))
    future: Future[OpenedRun] | None = None
    error: StepscopeError | None = None
    checked: float = 0.0


class Room:
    """Which open run was used when, and which one goes when they are too many or too large."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._runs: OrderedDict[str, OpenedRun] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, run_id: str) -> OpenedRun | None:
        """The open run, which then is the most recently used."""
        with self._lock:
            found = self._runs.get(run_id)
            if found is not None:
                self._runs.move_to_end(run_id)
            return found

    def put(self, run_id: str, run: OpenedRun) -> None:
        """Another open run."""
        with self._lock:
            self._runs[run_id] = run
            self._runs.move_to_end(run_id)
        self.make()

    def drop(self, run_id: str) -> None:
        """It is no longer what its files are."""
        with self._lock:
            self._runs.pop(run_id, None)

    def make(self) -> None:
        """Let go until the limits hold; the run that was used last stays, with the value that was used last."""
        with self._lock:
            while len(self._runs) > 1 and (len(self._runs) > self.limits.runs or self._is_full()):
                self._runs.popitem(last=False)
            last = next(reversed(self._runs.values()), None)
            while last is not None and self._is_full() and last.forget_oldest():
                pass

    def _is_full(self) -> bool:
        return self.bytes() > self.limits.bytes

    def bytes(self) -> int:
        """Of all open runs."""
        with self._lock:
            return sum(run.bytes for run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)


class Opened:
    """All loads, shared: however many ask for a run, it is read once."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.room = Room(self.limits)
        self.workers = Workers(self.limits)
        self._loads: dict[str, _Load] = {}
        self._lock = threading.Lock()

    def get(self, listed: ListedRun) -> OpenedRun:
        """The open run. NotYet while it is read; a StepscopeError if it cannot be, or has changed since."""
        load = self._current(listed)
        if load.error is not None:
            raise load.error
        found = self.room.get(listed.id)
        if found is not None and found.key == load.key:
            return found
        future = load.future
        if future is None or (future.done() and found is None):  # never read, or let go meanwhile
            future = self._begin(listed, load)
        try:
            return future.result(PATIENCE_S)
        except NotInTime:
            raise NotYet(load.progress) from None

    def state(self, listed: ListedRun) -> tuple[str, Progress | None, StepscopeError | None]:
        """new, loading, ready or failed, without touching a file."""
        with self._lock:
            load = self._loads.get(listed.id)
        if load is None:
            return "new", None, None
        if load.error is not None:
            return "failed", None, load.error
        if load.future is not None and not load.future.done():
            return "loading", load.progress, None
        return ("ready" if listed.id in self.room._runs else "new"), None, None

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def _current(self, listed: ListedRun) -> _Load:
        """The load of the content as it is now. Whoever was shown another content is told, once."""
        with self._lock:
            load = self._loads.get(listed.id)
            every = CHECK_REMOTE_EVERY_S if listed.is_remote else CHECK_EVERY_S
            now = time.monotonic()
            if load is not None and now - load.checked < every:
                return load
            key = listed.key()
            if load is None or load.key != key:
                is_changed = load is not None and load.error is None
                self._loads[listed.id] = load = _Load(key, checked=now)
                self.room.drop(listed.id)
                if is_changed:
                    raise _changed(listed, key)
            load.checked = now
            return load

    def _begin(self, listed: ListedRun, load: _Load) -> Future[OpenedRun]:
        with self._lock:
            if load.future is None or load.future.done():
                load.progress = Progress("reading", 0, listed.run.size)
                load.future = self.workers.submit(lambda: self._read(listed, load))
            return load.future

    def _read(self, listed: ListedRun, load: _Load) -> OpenedRun:
        def progress(done: int, total: int) -> None:
            load.progress = Progress("reading", done, total)

        try:
            profile = load_run(listed.run, progress=progress)
        except StepscopeError as error:
            load.error = error
            raise
        found = OpenedRun(listed, profile, load.key, self.workers, self.room)
        self.room.put(listed.id, found)
        return found


def _changed(listed: ListedRun, key: str) -> Refused:
    if not key:
        return Refused(
            f"{listed.name} is no longer there.",
            status=410,
            where=listed.place,
            fix="Its files were moved or deleted.",
        )
    return Refused(
        f"{listed.name} changed while it was shown.",
        status=409,
        where=listed.place,
        fix="Reload the page to see the new content.",
    )
