"""Runs that are open: loaded once for all requests, bounded in number and bytes, the least recently used let go first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.profiles.cache import background
from stepscope.profiles.cache.stored import LazyFrames
from stepscope.profiles.load import load_run
from stepscope.profiles.profile import Profile
from stepscope.server.http.request import Refused
from stepscope.server.runs.first import FirstAnswers
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.memo import Limits, NotYet, Progress, Values, Workers, in_time

T = TypeVar("T")

CHECK_EVERY_S = 1.0
CHECK_REMOTE_EVERY_S = 30.0

__all__ = ["Limits", "NotYet", "Opened", "OpenedRun", "Progress"]


class OpenedRun:
    """A loaded profile and what was computed of it. `key` changes when the files' content does."""

    def __init__(
        self,
        listed: ListedRun,
        profile: Profile,
        key: str,
        workers: Workers,
        room: Room,
        first: FirstAnswers,
    ) -> None:
        self.listed = listed
        self.key = key
        self.first = first
        self._values = Values(workers, room.limits.kept_of_run, room.make)
        self._tables_bytes = 0
        self.use(profile)

    def use(self, profile: Profile) -> None:
        """Another copy of the same content."""
        self.profile = profile
        self._tables_bytes = sum(
            _in_memory(trace.tables) + _in_memory(trace.cold) for trace in profile.traces
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether its tables were read just now instead of being mapped from the cache."""
        return self._tables_bytes > 0

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """The value of this name: made by the first request while others wait, and kept while there is room."""
        return self._values.kept(name, make)

    def later(self, name: str, make: Callable[[], T], stage: str = "analysing") -> T:
        """The same in the background: NotYet (the page asks again) where it takes longer than a page should wait."""
        return self._values.later(name, make, stage)

    def soon(self, name: str, make: Callable[[], T], after_s: float = 0.0) -> None:
        """Begin with a value that will be asked for."""
        self._values.soon(name, make, after_s)

    @property
    def bytes(self) -> int:
        """What it takes in memory. Columns mapped from the cache are the system's to drop, and do not count."""
        read = sum(frames.nbytes for frames in self._read_frames())
        return self._tables_bytes + read + self._values.bytes

    def forget_oldest(self) -> bool:
        """Let go of the value that was not asked for longest, in the end of unpacked arguments; False if nothing is left."""
        if self._values.forget_oldest():
            return True
        unpacked = [trace.cold for trace in self.profile.traces if isinstance(trace.cold, LazyFrames)]
        had = sum(frames.nbytes for frames in unpacked) > 0
        for frames in unpacked:
            frames.forget()
        return had

    def _read_frames(self) -> Iterator[LazyFrames]:
        """Frames that were read from the cache so far."""
        for trace in self.profile.traces:
            yield from (each for each in (trace.tables, trace.cold) if isinstance(each, LazyFrames))


def _in_memory(frames: Mapping[str, pl.DataFrame] | None) -> int:
    """Of frames that were not read from the cache, also below those that notes beside the trace corrected."""
    if isinstance(frames, LazyFrames):
        return _in_memory(frames.over)
    return sum(int(frame.estimated_size()) for frame in (frames or {}).values())


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

    def has(self, run_id: str) -> bool:
        """Whether it is open; asking does not count as using it."""
        with self._lock:
            return run_id in self._runs

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
        future, is_first = load.future, False
        if future is None or (future.done() and found is None):  # never read, or let go meanwhile
            future, is_first = self._begin(listed, load), True
        return in_time(future, load.progress, is_first)

    def begin(self, listed: ListedRun) -> None:
        """Open the run for questions that will follow; these report what goes wrong."""
        try:
            load = self._current(listed)
            if load.error is None and load.future is None:
                self._begin(listed, load)
        except StepscopeError:
            pass

    def is_open(self, listed: ListedRun) -> bool:
        """Whether questions about it can be answered at once."""
        return self.room.has(listed.id)

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
        return ("ready" if self.room.has(listed.id) else "new"), None, None

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def _current(self, listed: ListedRun) -> _Load:
        """The load of the content as it is now. A client that was shown another content is notified once."""
        every = CHECK_REMOTE_EVERY_S if listed.is_remote else CHECK_EVERY_S
        with self._lock:
            load = self._loads.get(listed.id)
            if load is not None and time.monotonic() - load.checked < every:
                return load
        key = listed.key()  # a remote file system may take its time: nobody else waits for it
        with self._lock:
            before = self._loads.get(listed.id)
            if before is not None and before.key == key:
                before.checked = time.monotonic()
                return before
            load = self._loads[listed.id] = _Load(key, checked=time.monotonic())
            self.room.drop(listed.id)
        if before is not None and before.error is None:
            raise _changed(listed, key)
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

        first = FirstAnswers(listed)  # of the files as they are before they are read
        try:
            profile = load_run(listed.run, progress=progress)
        except StepscopeError as error:
            load.error = error
            raise
        found = OpenedRun(listed, profile, load.key, self.workers, self.room, first)
        self.room.put(listed.id, found)
        if found.is_in_memory:
            self._settle(found)
        return found

    def _settle(self, found: OpenedRun) -> None:
        """When its tables are stored, use those instead of the ones in memory."""

        def settle() -> None:
            background.wait()
            try:
                if found.listed.is_stored():
                    found.use(load_run(found.listed.run))
            except StepscopeError:  # it is gone or has changed: the next one who asks is told
                pass

        try:
            self.workers.submit(settle)
        except Refused:  # too busy: then it stays in memory, and counts
            pass


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
