"""How long a step takes without the profiler: runs of steps around a window, between two waits for the devices.

The host runs ahead of a device, so the lengths of single steps on the host say little: only a run of steps with a wait at
either end, and none inside, lasts as long as its work. Loaders with several workers deliver batches in bursts, so a run
holds a multiple of their number. From the wait at its beginning until the queue is full nothing holds the host up: the
lengths of those steps are the host's own time.
"""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

# Steps of a run; fewer are enough if they last a second, which the reader decides.
STEPS = 20
# Left out: steps that trace, compile and tune, and steps in which caches are cold and prefetched batches used up.
SKIPPED = 3
_MOST_STEPS = 60
_BLOCKS = 5
# The queue is full, or something else holds the host up, once a step takes so many times the steps before it.
_HELD_UP = 1.5
_NEVER = 1 << 62


class UnprofiledRuns:
    """Plans, times and keeps the run before a window and the one after it."""

    def __init__(self, wait: Callable[[], bool]) -> None:
        self._wait = wait
        self.before: dict[str, Any] | None = None
        self.after: dict[str, Any] | None = None
        self._is_after = False
        self._begin_at = self._end_at = _NEVER
        self._open: tuple[int, int, bool, int, int] | None = None

    def plan_before(self, number: int, edge: int, skipped: int = SKIPPED) -> None:
        """Steps go unprofiled from `number` on, up to the window that begins at `edge`."""
        period = workers_in_use()
        room = min(edge - number - skipped, _rounded(STEPS, period))
        room = room // period * period or room
        self._is_after = False
        self._begin_at, self._end_at = (edge - room, edge) if room > 1 and edge < _NEVER else (_NEVER, _NEVER)

    def plan_after(self, number: int, edge: int) -> None:
        """The same from the end of a window on; the next one begins at `edge`, or never."""
        begin = number + SKIPPED
        self._is_after, self._begin_at = True, begin
        self._end_at = min(begin + _rounded(STEPS, workers_in_use()), edge)
        if self._end_at - begin < 2:
            self._begin_at = self._end_at = _NEVER

    @property
    def next_point(self) -> int:
        """The step at which a run begins or ends."""
        return self._end_at if self._open is not None else self._begin_at

    def reach(self, number: int, moments: Iterable[int], now: Callable[[], int]) -> bool:
        """The step `number` begins: begin or end a run if it is time; whether a run has ended."""
        if self._open is not None and number >= self._end_at:
            self.close(number, moments, now)
            return True
        if self._open is None and number >= self._begin_at and number < self._end_at:
            is_waited = self._wait()
            self._open = number, now(), is_waited, workers_in_use(), _full_collections()
        return False

    def close(self, number: int, moments: Iterable[int], now: Callable[[], int]) -> None:
        """No more steps go unprofiled: keep the run that is open."""
        opened, self._open = self._open, None
        self._begin_at = self._end_at = _NEVER
        if opened is None:
            return
        first, began, was_waited, period, collections = opened
        is_waited = self._wait()
        edges = [began, *(moment for moment in moments if moment > began)][: number - first + 1]
        if len(edges) < 2 or number - first != len(edges) - 1:
            return  # more steps than moments are kept
        run = _summarise(first, edges, now(), period) | {"synchronised": was_waited and is_waited}
        run["full_collections"] = _full_collections() - collections
        if self._is_after:
            self.after = run
        else:
            self.before = run

    def close_after(self, number: int, moments: Iterable[int], now: Callable[[], int]) -> None:
        """Nothing more will be noted of the window: keep what there is of the run after it."""
        if self._is_after:
            self.close(number, moments, now)

    def give_up(self) -> None:
        """A run that is open does not count."""
        self._open, self._begin_at, self._end_at = None, _NEVER, _NEVER

    def rows(self) -> dict[str, Any]:
        """For the sidecar."""
        return {"before": self.before, "after": self.after}

    def forget(self) -> None:
        """The next window has runs of its own; what came after the last one comes before it."""
        self.before, self.after = self.after, None


def _summarise(first: int, edges: list[int], end: int, period: int) -> dict[str, Any]:
    count = len(edges) - 1
    lengths = [after - before for before, after in itertools.pairwise(edges)]
    mean = (end - edges[0]) / count
    margin = _scatter(lengths[len(_host_lengths(lengths)) :] or lengths, period)
    return {
        "first": first,
        "count": count,
        "total_ns": end - edges[0],
        "mean_ns": round(mean),
        "low_ns": round(mean * (1 - margin)),
        "high_ns": round(mean * (1 + margin)),
        "workers": period,
        "host_durations_ns": _host_lengths(lengths),
    }


def _host_lengths(lengths: list[int]) -> list[int]:
    """The steps from the wait until the host is held up; all of them where it never is."""
    for place in range(1, len(lengths)):
        if lengths[place] > _HELD_UP * sum(lengths[:place]) / place:
            return lengths[:place]
    return lengths


def _scatter(lengths: list[int], period: int) -> float:
    """Half the range of the means of consecutive blocks, as a share of the mean."""
    size = max(1, len(lengths) // _BLOCKS)
    size = max(period, size // period * period)
    blocks = [sum(lengths[at : at + size]) / size for at in range(0, len(lengths) - size + 1, size)]
    mean = sum(blocks) / len(blocks) if blocks else 0.0
    return (max(blocks) - min(blocks)) / 2 / mean if mean else 0.0


def _rounded(steps: int, period: int) -> int:
    return min(_MOST_STEPS // period * period, -(-steps // period) * period) or steps


def _full_collections() -> int:
    """How often Python has looked at all of its objects for garbage: with those of a framework each time takes 0.1 s and more."""
    try:
        return int(gc.get_stats()[-1]["collections"])
    except (IndexError, KeyError, TypeError):  # another implementation of Python
        return 0


def workers_in_use() -> int:
    """How many processes make batches for this one; 1 where none does, or more than a run could balance."""
    processes = sys.modules.get("multiprocessing.process")
    children = getattr(processes, "_children", ())
    try:
        count = sum(1 for child in list(children) if child.daemon and child.is_alive())
    except Exception:  # children that are just being started or joined by another thread
        return 1
    return count if 1 <= count <= _MOST_STEPS else 1
