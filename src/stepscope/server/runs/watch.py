"""The runs below the given places, looked for in the background for as long as anyone looks at the page."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.paths import locate, missing
from stepscope.profiles.find.walk import Skipped
from stepscope.safe import readable
from stepscope.server.runs.listed import ListedRun, listed

SCAN_EVERY_S = 3.0
FIRST_LOOK_S = 2.0
# A walk over a slow or huge folder rests ten times as long as it took.
REST = 10
SKIPPED_SHOWN = 500


@dataclass(frozen=True)
class Place:
    """A file, folder, pattern or URL to look at; `name` is what it is called if not by its path."""

    path: str
    name: str = ""

    @property
    def shown(self) -> str:
        """For the page: a local path in full, since the page does not know the current folder."""
        if self.name or "://" in self.path or "::" in self.path:
            return readable(self.name or self.path)
        return readable(os.path.abspath(Path(self.path).expanduser()))  # noqa: PTH100 (links stay as they are)


@dataclass(frozen=True)
class Found:
    """What one look at all places found."""

    runs: dict[str, ListedRun] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    is_complete: bool = False


class Runs:
    """The list of runs. Asking for it never waits: it wakes the thread that looks again."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)
        self._found = Found()
        self._wanted = threading.Event()
        self._first = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._newest = 0

    def add(self, place: Place) -> None:
        """Look there as well, from now on."""
        if place not in self.places:
            self.places = (*self.places, place)

    def found(self) -> Found:
        """As of the last look; another one follows soon."""
        self._start()
        self._wanted.set()
        return self._found

    def has_any(self, patience_s: float) -> bool:
        """Whether there is a run; waits so long for the first look, and never for others."""
        if not self.found().is_complete:
            self._first.wait(patience_s)
        return bool(self._found.runs)

    def get(self, run_id: str) -> ListedRun | None:
        """The run with this id. A link opened just after the start waits a moment for the first look."""
        found = self.found()
        if run_id not in found.runs and not found.is_complete:
            self._first.wait(FIRST_LOOK_S)
        return self._found.runs.get(run_id)

    def look_now(self) -> Found:
        """Look at all places in this thread. A look that began earlier and ends later does not bring back what it saw."""
        with self._lock:
            number = next(self._numbers)
        found = _look(self.places)
        with self._lock:
            if number > self._newest:
                self._found, self._newest = found, number
        self._first.set()
        return found

    def close(self) -> None:
        """End the thread after the look it is at."""
        self._closed = True
        self._wanted.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._keep_looking, name="stepscope-runs", daemon=True)
                self._thread.start()

    def _keep_looking(self) -> None:
        while not self._closed:
            self._wanted.clear()
            began = time.monotonic()
            try:
                self.look_now()
            except Exception:  # the list stays as it was; the next look may do better
                logging.getLogger(__name__).exception("stepscope could not look for profiles")
            took = time.monotonic() - began
            time.sleep(max(SCAN_EVERY_S, took * REST) if not self._closed else 0)
            self._wanted.wait()


def check_place(path: str) -> None:
    """Report a typo at once: a local path must be there, empty or not."""
    location = locate(path)
    if location.filesystem is None and not location.is_pattern and not Path(location.path).exists():
        raise missing(location)


def _look(places: Sequence[Place]) -> Found:
    runs: dict[str, ListedRun] = {}
    skipped: list[Skipped] = []
    for place in places:
        try:
            catalog = scan(place.path)
        except StepscopeError as error:
            skipped.append(Skipped(place.path, " ".join(filter(None, (error.what, error.fix)))))
            continue
        skipped += catalog.skipped
        for run in catalog.runs:
            found = listed(run, place.shown)
            runs.setdefault(found.id, found)
    ordered = sorted(runs.values(), key=lambda each: each.run.time_ns, reverse=True)
    return Found({each.id: each for each in ordered}, tuple(skipped[:SKIPPED_SHOWN]), is_complete=True)
