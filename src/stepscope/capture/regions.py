"""The regions of a loop: which of them are recorded, and how long each pass through one took."""

from __future__ import annotations

import threading
from collections.abc import Collection
from time import perf_counter_ns
from typing import Any

# A loop of very short regions must not fill the memory; what is left out is counted.
MOST_PASSES = 100_000


class Regions:
    """Each pass through a wanted region is a step. A region inside another one, or in another thread meanwhile, is not."""

    def __init__(self, wanted: bool | Collection[str]) -> None:
        self._wanted = wanted if isinstance(wanted, bool) else frozenset(wanted)
        self._names: dict[str, int] = {}
        self._which: list[int] = []
        self._durations: list[int] = []
        self._open: tuple[str, int, int] | None = None
        self._count = self._first = 0

    @property
    def is_on(self) -> bool:
        """Whether only regions are recorded."""
        return self._wanted is True or bool(self._wanted)

    def want_all(self) -> None:
        """A region came before start(): from now on nothing else is recorded."""
        self._wanted = self._wanted or True

    def may_enter(self, name: str) -> bool:
        """Whether a pass through this region is a step of its own."""
        wanted = self._wanted is True or (self._wanted is not False and name in self._wanted)
        return wanted and self._open is None

    @property
    def next_number(self) -> int:
        """The number of the next pass; passes of all regions are counted together."""
        return self._count

    def enter(self, name: str) -> None:
        """A pass begins, as the last thing before the region's own code runs."""
        self._open = name, threading.get_ident(), perf_counter_ns()

    def leave(self) -> bool:
        """A pass ends, as the first thing after the region's own code; false where this thread has none open."""
        now = perf_counter_ns()
        if self._open is None or self._open[1] != threading.get_ident():
            return False
        name, _, start = self._open
        self._open = None
        self._count += 1
        if len(self._which) < MOST_PASSES:
            self._which.append(self._names.setdefault(name, len(self._names)))
            self._durations.append(now - start)
        return True

    def forget_open(self) -> None:
        """The window closed inside a region: that pass is not recorded."""
        self._open = None

    def taken(self) -> dict[str, Any] | None:
        """For the sidecar: the passes of the window that closes; None where regions were off."""
        if not self.is_on:
            return None
        found = {
            "names": list(self._names),
            "first": self._first,
            "passes": self._count - self._first,
            "which": self._which,
            "durations_ns": self._durations,
        }
        self._names, self._which, self._durations = {}, [], []
        self._first = self._count
        self.forget_open()
        return found
