"""Search over the whole trace: what is found, when, the next hit before or after a moment, and the list of hits."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.server.http.request import BadRequest, Refused
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline.arguments import events_with
from stepscope.server.timeline.query import LONGEST_NS, Argument, Wanted, read_query
from stepscope.server.timeline.view import View, view_at
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.lookup import distinct, names_of
from stepscope.trace.trace import Trace

BINS = 512
MOST_NAMES = 5_000
LONGEST_TEXT = 300
LISTED = 200  # hits that one answer lists


class Hit(msgspec.Struct):
    """A hit as the list shows it."""

    id: int
    name: str
    after_ns: int
    dur_ns: int
    step: int | None


def search(view: View, text: str) -> dict[str, Any]:
    """How many events match, how many of them begin when, and the numbers of their names."""
    hits = hits_of(view, text)
    low, high = view.extent.start_ns, view.extent.end_ns
    width = max(1, high - low)
    starts = view.trace.events["start_ns"].gather(hits)
    bins = ((starts - low) * BINS // width).clip(0, BINS - 1)
    counts = bins.value_counts() if len(bins) else pl.DataFrame({"start_ns": [], "count": []})
    histogram = [0] * BINS
    for at, count in counts.iter_rows():
        histogram[at] = count
    return {"count": len(hits), "histogram": histogram, "names": _name_numbers(view, hits)}


def listed(view: View, text: str, first: int) -> dict[str, Any]:
    """Some of the hits in the order of time, from the one with this place on; `total` counts all."""
    hits = hits_of(view, text)
    frame = pl.DataFrame({"id": hits, "start_ns": view.trace.events["start_ns"].gather(hits)})
    ids = frame.bottom_k(first + LISTED, by=["start_ns", "id"]).sort("start_ns", "id")["id"].slice(first)
    rows = view.trace.events.select("id", "name", "start_ns", "dur_ns", "step")[ids]
    begin = view.extent.start_ns
    shown = [Hit(row["id"], row["name"] or "", row["start_ns"] - begin, row["dur_ns"], row["step"]) for row in rows.iter_rows(named=True)]  # fmt: skip
    return {"total": len(hits), "first": first, "hits": shown}


def counts_of_ranks(run: OpenedRun, text: str) -> list[dict[str, int]]:
    """How many events of each rank match."""
    return [{"rank": rank, "count": _count(view_at(run, rank), text)} for rank in run.profile.ranks]


def _count(view: View, text: str) -> int:
    wanted = read_query(text)
    if not wanted.is_name_only or wanted.pattern is None:
        return len(hits_of(view, text, wait=True))
    is_wanted = _wanted_codes(view.trace, wanted.pattern)
    return 0 if is_wanted is None else int(is_wanted.gather(view.trace.events["name"].to_physical()).sum())


def found(view: View, text: str, at: int, event: int | None, by: int) -> dict[str, Any]:
    """The hit after (`by` 1) or before (-1) a moment; from an event on, the one that follows it.

    Goes round at the ends, and says so: there may be other ranks.
    """
    hits = hits_of(view, text)
    if hits.is_empty():
        raise Refused("Nothing is found.", status=404)
    frame = pl.DataFrame({"id": hits, "start": view.trace.events["start_ns"].gather(hits)})
    here = pl.col("start") == at
    if event is None:
        later, earlier = pl.col("start") >= at, pl.col("start") <= at
    else:
        later = (pl.col("start") > at) | (here & (pl.col("id") > event))
        earlier = (pl.col("start") < at) | (here & (pl.col("id") < event))
    side = frame.filter(later if by > 0 else earlier)
    chosen = side if len(side) else frame
    first = chosen.sort("start", "id", descending=by < 0).row(0) if len(chosen) < 64 else _first(chosen, by)
    number, start = first
    before = frame.filter((pl.col("start") < start) | ((pl.col("start") == start) & (pl.col("id") < number)))
    return {"id": number, "start_ns": start, "place": len(before) + 1, "around": side.is_empty()}


def _first(frame: pl.DataFrame, by: int) -> tuple[int, int]:
    """The row that would come first, without sorting all of them."""
    take = take_smallest if by > 0 else take_largest
    start = take(frame["start"])
    return take(frame.filter(pl.col("start") == start)["id"]), start


def hits_of(view: View, text: str, wait: bool = False) -> pl.Series:
    """The numbers of the events that match, ascending. They are not stored: they may be millions, and found in no time.

    NotYet while arguments are searched, unless the caller can `wait`.
    """
    wanted = read_query(text)
    hits = _with_name(view.trace, wanted.pattern)
    if wanted.least_ns > 0 or wanted.most_ns < LONGEST_NS:
        dur = view.trace.events["dur_ns"].gather(hits)
        hits = hits.filter((dur >= wanted.least_ns) & (dur <= wanted.most_ns))
    return _with_arguments(view, wanted, hits, wait)


def _with_name(trace: Trace, pattern: str | None) -> pl.Series:
    if pattern is None:
        return trace.events["id"]
    is_wanted = _wanted_codes(trace, pattern)
    if is_wanted is None:
        return pl.Series("id", [], dtype=pl.UInt32)
    codes = trace.events["name"].to_physical()
    ids: pl.Series = is_wanted.gather(codes).fill_null(False).arg_true().cast(pl.UInt32)
    return ids.alias("id")


def _with_arguments(view: View, wanted: Wanted, hits: pl.Series, wait: bool) -> pl.Series:
    """Those that have all the arguments; which events have one is kept, as it takes a look at everything the file said."""
    for argument in wanted.arguments:
        hits = hits.filter(hits.is_in(_events_with(view, argument, wait).implode()))
    return hits


def _events_with(view: View, argument: Argument, wait: bool) -> pl.Series:
    name = f"timeline argument {view.rank} {argument.key}={argument.value}"

    def make() -> pl.Series:
        return events_with(view.trace, argument)

    return view.run.kept(name, make) if wait else view.run.later(name, make, "searching arguments")


def _wanted_codes(trace: Trace, pattern: str) -> pl.Series | None:
    """By the code of each name, whether it matches; None where none does."""
    known = names_of(trace.events)
    wanted = known.filter(matches(known.cast(pl.String), pattern)).to_physical()
    if wanted.is_empty():
        return None
    size = take_largest(known.to_physical()) + 1
    return pl.repeat(False, size, dtype=pl.Boolean, eager=True).scatter(wanted, True)


def _name_numbers(view: View, hits: pl.Series) -> list[int]:
    """For the picture, where other names are dimmed; too many would show nothing."""
    found = distinct(view.trace.events["name"].gather(hits)).cast(pl.String)
    if len(found) > MOST_NAMES:
        return []
    numbers: list[int] = view.store.names.is_in(found.implode()).arg_true().to_list()
    return numbers


def matches(names: pl.Series, pattern: str) -> pl.Series:
    """Which names match, whatever the case; an invalid regular expression is refused with the reason."""
    try:
        return names.str.contains(f"(?i){pattern}").fill_null(False)
    except pl.exceptions.ComputeError as error:
        raise BadRequest(f"The regular expression is not valid: {_reason(str(error))}.", where="q") from error


def _reason(error: str) -> str:
    """Why a pattern cannot be read, out of what the library says about it on several lines."""
    lines = [line.strip() for line in error.split("\n\n", 1)[0].splitlines() if line.strip()]
    last = lines[-1] if lines else "it cannot be read"
    return last.removeprefix("regex error:").strip().removeprefix("error:").strip().rstrip(".")
