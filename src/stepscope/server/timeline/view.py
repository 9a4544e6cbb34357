"""One rank's trace as the viewer sees it: what several questions need, made once for each run that is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from stepscope.profiles.cache.stored import let_go
from stepscope.server.http.request import BadRequest, Query, Refused
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline.alignment import moved_trace
from stepscope.server.timeline.extent import Extent, extent_of
from stepscope.server.timeline.store import Store, store_of
from stepscope.trace.trace import Trace

T = TypeVar("T")
HIGHEST_RANK = 1_000_000


@dataclass(frozen=True)
class View:
    """A rank and its trace; `name` distinguishes what is cached of it from what is cached of others."""

    run: OpenedRun
    rank: int
    trace: Trace
    name: str
    shown: int | None = None  # the rank in whose time the trace is, where that is not its own

    @property
    def is_in_its_time(self) -> bool:
        """Whether its events are when they were recorded, not moved to the clock of another rank."""
        return self.name == str(self.rank)

    @property
    def store(self) -> Store:
        """Its events in rows."""
        return self.run.kept(f"timeline store {self.name}", lambda: lean(store_of(self.trace)))

    @property
    def extent(self) -> Extent:
        """When it begins and ends."""
        return self.run.kept(f"timeline extent {self.name}", lambda: extent_of(self.trace, self.store))

    def event(self, number: int) -> int:
        """The number of an event, if there is one."""
        if not 0 <= number < len(self.trace.events):
            raise BadRequest("There is no such event.", where="id")
        return number


def lean(value: T) -> T:
    """The value, after the memory of tables that was only needed to make it is given back."""
    let_go()
    return value


def view_of(run: OpenedRun, query: Query) -> View:
    """Of the rank that is asked for, else the first; in the time of the rank `moved`, where that is asked for."""
    moved = rank_of(run, query, "moved") if query.has("moved") else None
    return view_at(run, rank_of(run, query, "rank"), moved)


def view_at(run: OpenedRun, rank: int, shown: int | None = None) -> View:
    """Of a rank, in its own time or in that of another one that is shown."""
    if shown is None or shown == rank:
        return View(run, rank, run.profile.trace(rank), str(rank))
    return View(run, rank, moved_trace(run, rank, shown), f"{rank} moved to {shown}", shown)


def rank_of(run: OpenedRun, query: Query, name: str) -> int:
    """The rank that is asked for, else the first."""
    ranks = run.profile.ranks
    rank = query.integer(name, 0, HIGHEST_RANK, ranks[0])
    if rank not in ranks:
        raise Refused(f"There is no rank {rank}.", status=404, where=name)
    return rank


def need_key(run: OpenedRun, query: Query) -> None:
    """Answers that are kept forever are of one content: a request for another one is refused with a reason."""
    if query.text("key", 64) != run.key:
        raise Refused(
            "The profile changed since the page was opened.",
            status=409,
            where="key",
            fix="Reload the page to see the new content.",
        )
