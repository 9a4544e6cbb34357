"""The figures of all runs: from memory, from what was kept, or made in the background, a bounded number of them."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from stepscope.errors import StepscopeError
from stepscope.gate.trend import Change, compare_steps
from stepscope.reports.model.report import Report
from stepscope.server.runs.figures import KeptFigures, RunFigures, figures_of, make_figures
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.titles import job_of

MOST_KNOWN = 5_000  # runs in memory, about 2 KiB each
MOST_MADE = 40  # by one server, unasked
LARGEST_BYTES = 64 << 20  # of a run that is read unasked
LOOK_AGAIN_S = 20.0  # whether another process has kept figures meanwhile
NOTE_AFTER_S = 1.5
WANTED_S = 30.0  # after the last question nobody looks at the list any more

State = tuple[tuple[str, int, int], ...]


class Dashboard:
    """Shared by all requests. Listing reads small files only; at most one run at a time is read in the background."""

    def __init__(
        self, kept: KeptFigures | None = None, make: Callable[[ListedRun], RunFigures] = make_figures
    ) -> None:
        self._kept = kept or KeptFigures()
        self._make = make
        self._known: OrderedDict[str, tuple[State, RunFigures]] = OrderedDict()
        self._missed: dict[str, tuple[State, float]] = {}
        self._refused: set[tuple[str, State]] = set()
        self._to_note: set[str] = set()
        self._made = 0
        self._asked = 0.0
        self._waiting: list[ListedRun] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._lock = threading.Lock()

    def shown(self, runs: Sequence[ListedRun]) -> dict[str, Any]:
        """The figures of those that have some, how each changed since the run before it, and how many are being made."""
        known = {each.id: found for each in runs if (found := self._find(each)) is not None}
        jobs = {each.id: job_of(each.name, each.place) for each in runs}
        self._want([each for each in runs if each.id not in known])
        return {
            "figures": known,
            "jobs": jobs,
            "changes": changes(runs, jobs, known),
            "waiting": [each.id for each in self._waiting],
        }

    def note_later(self, listed: ListedRun, data: bytes) -> None:
        """`note` after a moment: the page that asked for the report is still drawing it."""
        with self._lock:
            if listed.id in self._to_note:
                return
            self._to_note.add(listed.id)
        later = threading.Timer(NOTE_AFTER_S, self._note_now, (listed, data))
        later.daemon = True
        later.start()

    def note(self, listed: ListedRun, data: bytes) -> None:
        """A report was made for someone, as JSON: its figures are known from now on."""
        if self._find(listed) is not None:
            return
        try:
            found = figures_of(msgspec.json.decode(data, type=Report))
        except (msgspec.MsgspecError, UnicodeError):
            return
        self._keep(listed, found)

    def close(self) -> None:
        """Make no more."""
        self._closed = True

    def _note_now(self, listed: ListedRun, data: bytes) -> None:
        with self._lock:
            self._to_note.discard(listed.id)
        if not self._closed:
            self.note(listed, data)

    def _find(self, listed: ListedRun) -> RunFigures | None:
        found = self._in_memory(listed)
        if found is not None or self._was_missed(listed):
            return found
        found = self._kept.get(listed)
        if found is None:
            self._missed[listed.id] = state_of(listed), time.monotonic()
        else:
            self._remember(listed, found)
        return found

    def _in_memory(self, listed: ListedRun) -> RunFigures | None:
        with self._lock:
            found = self._known.get(listed.id)
            return found[1] if found is not None and found[0] == state_of(listed) else None

    def _was_missed(self, listed: ListedRun) -> bool:
        """Looked for a moment ago, and not there: hundreds of runs are not looked up again and again."""
        missed = self._missed.get(listed.id)
        return (
            missed is not None
            and missed[0] == state_of(listed)
            and time.monotonic() - missed[1] < LOOK_AGAIN_S
        )

    def _remember(self, listed: ListedRun, found: RunFigures) -> None:
        with self._lock:
            self._missed.pop(listed.id, None)
            self._known[listed.id] = state_of(listed), found
            self._known.move_to_end(listed.id)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def _keep(self, listed: ListedRun, found: RunFigures) -> None:
        self._remember(listed, found)
        self._kept.keep(listed, found)

    def _want(self, runs: Iterable[ListedRun]) -> None:
        """The newest first; large and remote ones only when they are opened."""
        worth = [
            each
            for each in runs
            if not each.is_remote
            and each.run.size <= LARGEST_BYTES
            and (each.id, state_of(each)) not in self._refused
        ]
        with self._lock:
            self._asked = time.monotonic()
            self._waiting = worth[: max(0, MOST_MADE - self._made)]
            if self._waiting and not self._closed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._make_all, name="stepscope-figures", daemon=True)
                self._thread.start()

    def _next(self) -> ListedRun | None:
        with self._lock:
            is_wanted = time.monotonic() - self._asked < WANTED_S and not self._closed
            return self._waiting.pop(0) if self._waiting and is_wanted else None

    def _make_all(self) -> None:
        while (listed := self._next()) is not None:
            try:
                if self._in_memory(listed) is None:
                    self._made += 1
                    self._keep(listed, self._make(listed))
            except StepscopeError:  # opening the run shows the error
                self._refused.add((listed.id, state_of(listed)))
            except Exception:  # a line of a list is no reason to end anything
                self._refused.add((listed.id, state_of(listed)))
                logging.getLogger(__name__).debug("stepscope could not summarise a run", exc_info=True)


def state_of(listed: ListedRun) -> State:
    """As the scan saw its files, without another look."""
    return tuple((entry.path, entry.size, entry.mtime_ns) for entry in listed.run.entries)


def changes(
    runs: Sequence[ListedRun], jobs: dict[str, str], known: dict[str, RunFigures]
) -> dict[str, dict[str, Any]]:
    """Of each run since the one before it of the same job, framework, devices and ranks."""
    before: dict[tuple[Any, ...], str] = {}
    found: dict[str, dict[str, Any]] = {}
    for each in sorted(runs, key=lambda one: one.run.time_ns):
        figures = known.get(each.id)
        if figures is None or figures.noise is None:
            continue
        same = jobs[each.id], figures.framework, figures.devices, figures.ranks
        earlier = before.get(same)
        if earlier is not None:
            found[each.id] = {"since": earlier, **_written(known[earlier], figures)}
        before[same] = each.id
    return found


def _written(before: RunFigures, after: RunFigures) -> dict[str, Any]:
    if before.noise is None or after.noise is None:
        return {}
    change: Change = compare_steps(before.noise, after.noise)
    return msgspec.structs.asdict(change) | {"before_ns": before.noise.mean_ns}
