"""Search by name over the whole trace: what is found, when, and the next hit before or after a moment."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from stepscope.server.http.request import BadRequest, Refused
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline.view import View
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.lookup import distinct
from stepscope.trace.trace import Trace

BINS = 512
MOST_NAMES = 5_000
LONGEST_TEXT = 300


def search(view: View, text: str) -> dict[str, Any]:
    """How many events bear a name that matches, how many of them begin when, and the numbers of the names."""
    hits = hits_of(view.trace, text)
    low, high = view.extent.start_ns, view.extent.end_ns
    width = max(1, high - low)
    starts = view.trace.events["start_ns"].gather(hits)
    bins = ((starts - low) * BINS // width).clip(0, BINS - 1)
    counts = bins.value_counts() if len(bins) else pl.DataFrame({"start_ns": [], "count": []})
    histogram = [0] * BINS
    for at, count in counts.iter_rows():
        histogram[at] = count
    return {"count": len(hits), "histogram": histogram, "names": _name_numbers(view, text)}


def counts_of_ranks(run: OpenedRun, text: str) -> list[dict[str, int]]:
    """How many events of each rank bear a name that matches."""
    profile = run.profile
    return [
        {"rank": rank, "count": _count(trace, text)}
        for rank, trace in zip(profile.ranks, profile.traces, strict=True)
    ]


def _count(trace: Trace, text: str) -> int:
    is_wanted = _wanted_codes(trace, text)
    return 0 if is_wanted is None else int(is_wanted.gather(trace.events["name"].to_physical()).sum())


def found(view: View, text: str, at: int, event: int | None, by: int) -> dict[str, Any]:
    """The hit after (`by` 1) or before (-1) a moment; from an event on, the one that follows it.

    Goes round at the ends, and says so: there may be other ranks.
    """
    hits = hits_of(view.trace, text)
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


def hits_of(trace: Trace, text: str) -> pl.Series:
    """The numbers of the events whose name matches, ascending. They are not stored: they may be millions, and found in no time."""
    is_wanted = _wanted_codes(trace, text)
    if is_wanted is None:
        return pl.Series("id", [], dtype=pl.UInt32)
    codes = trace.events["name"].to_physical()
    ids: pl.Series = is_wanted.gather(codes).fill_null(False).arg_true().cast(pl.UInt32)
    return ids.alias("id")


def _wanted_codes(trace: Trace, text: str) -> pl.Series | None:
    """By the code of each name, whether it matches; None where none does."""
    known = distinct(trace.events["name"])
    wanted = known.filter(matches(known.cast(pl.String), text)).to_physical()
    if wanted.is_empty():
        return None
    size = take_largest(known.to_physical()) + 1
    return pl.repeat(False, size, dtype=pl.Boolean, eager=True).scatter(wanted, True)


def _name_numbers(view: View, text: str) -> list[int]:
    """For the picture, where other names are dimmed; too many would show nothing."""
    numbers = matches(view.store.names, text).arg_true()
    return numbers.to_list() if len(numbers) <= MOST_NAMES else []


def matches(names: pl.Series, text: str) -> pl.Series:
    """Names with the text in them, whatever the case; /text/ is a regular expression."""
    text = text.strip()
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            return names.str.contains(f"(?i){text[1:-1]}").fill_null(False)
        except pl.exceptions.ComputeError as error:
            raise BadRequest("Invalid regular expression.", where="q") from error
    return names.str.contains(f"(?i){re.escape(text)}").fill_null(False)
