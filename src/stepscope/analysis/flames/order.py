"""A flame graph in the order of time: every call is a box of its own, below the one that it was made in.

By host time a box is where the call began, and each thread has rows of its own. By another measure boxes follow each other in the
order of the calls, each as wide as what it costs, with threads side by side. What is narrower than a pixel is merged with its
neighbours, so that the answer is bounded by the screen however many events there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.flames.costs import Costs, Span
from stepscope.analysis.ops.flame import THREAD, category, host_threads
from stepscope.registers.policy.tables import DEEPEST_STACK, FLAME_BOXES, FLAME_THREADS
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Order:
    """`boxes` has row, name (a place in `names`), x0, x1, calls, event (null for a thread) and kind, from top to bottom.

    Places are counted from the start of what is asked for, which is `whole` long; `shown` is the part of it that was asked for.
    """

    names: list[str]
    boxes: pl.DataFrame
    whole: int
    shown: Span
    left_out: int = 0
    threads_left_out: int = 0


@dataclass(frozen=True)
class Places:
    """`rows` has row, x0, x1, event (null for a thread) and track: where every call is, however narrow."""

    rows: pl.DataFrame
    whole: int
    threads_left_out: int = 0

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.rows.estimated_size())


def place_calls(costs: Costs) -> Places:
    """All calls: what any part of the picture is cut from."""
    return _by_clock(costs) if costs.measure == "host" else _by_cost(costs)


def in_order(trace: Trace, places: Places, shown: Span | None, pixels: int) -> Order:
    """The boxes of a part of the axis, or of all of it, drawn on this number of pixels."""
    whole = places.whole
    low, high = shown or (0, whole)
    low = max(0, min(low, whole - 1))
    high = max(low + 1, min(high, whole))
    inside = places.rows.filter(pl.col("x0") < high, pl.col("x1") > low)
    inside = inside.with_columns(pl.col("x0").clip(low, high), pl.col("x1").clip(low, high))
    merged = _merge_narrow(inside, low, pixels / (high - low))
    return _finished(trace, merged, places, (low, high))


def _by_clock(costs: Costs) -> Places:
    """Where each call of a host thread is on the clock, with rows for each thread."""
    events = costs.trace.events
    begin, end = _extent(costs)
    rows = events.select("id", "track", "depth", "start_ns", "dur_ns").join(
        host_threads(costs.trace), on="track", maintain_order="left"
    )
    start, stop = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    rows = rows.filter(pl.col("dur_ns") > 0, start < end, stop > begin, pl.col("depth") < DEEPEST_STACK)
    busy = rows.filter(pl.col("depth") == 0).group_by("track").agg(pl.col("dur_ns").sum())
    deep = rows.group_by("track").agg(rows=pl.col("depth").max().cast(pl.Int64) + 1)
    threads = busy.join(deep, on="track").sort(["dur_ns", "track"], descending=[True, False])
    kept = threads.head(FLAME_THREADS)
    first = kept.select("track", first=(pl.col("rows") + 1).cum_sum() - pl.col("rows") - 1)
    placed = rows.join(first, on="track", maintain_order="left").select(
        row=pl.col("first") + 1 + pl.col("depth"),
        x0=start.clip(begin, end) - begin,
        x1=stop.clip(begin, end) - begin,
        event="id",
        track="track",
    )
    titles = first.select(row="first", x0=pl.lit(0, pl.Int64), x1=pl.lit(end - begin), track="track")
    return Places(_below(titles, placed), end - begin, len(threads) - len(kept))


def _extent(costs: Costs) -> Span:
    """From the first to the last of what counts."""
    if costs.span is not None:
        return costs.span
    events = costs.trace.events
    some = events.filter(pl.col("step").is_not_null()) if events["step"].count() else events
    windows = costs.context.steps.windows
    if len(windows):
        some = windows.select("start_ns", dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    begin, end = some.select(pl.col("start_ns").min(), end=(pl.col("start_ns") + pl.col("dur_ns")).max()).row(
        0
    )
    return (int(begin), max(int(end), int(begin) + 1)) if begin is not None else (0, 1)


def _by_cost(costs: Costs) -> Places:
    """The same by what calls cost: events are sorted so that a call comes before those inside it, and its own cost is on the left."""
    trace = costs.trace
    rows = trace.events.select("id", "track", "depth", own=costs.own, total=costs.totals).join(
        host_threads(trace), on="track", maintain_order="left"
    )
    before = pl.col("own").cum_sum() - pl.col("own")
    rows = rows.with_columns(x0=before).filter(pl.col("total") > 0, pl.col("depth") < DEEPEST_STACK)
    placed = rows.select(
        row=pl.col("depth").cast(pl.Int64) + 1,
        x0="x0",
        x1=pl.col("x0") + pl.col("total"),
        event="id",
        track="track",
    )
    outer = placed.filter(pl.col("row") == 1).group_by("track", maintain_order=True)
    titles = outer.agg(pl.col("x0").min(), pl.col("x1").max()).select(
        row=pl.lit(0, pl.Int64), x0="x0", x1="x1", track="track"
    )
    whole = placed["x1"].max()
    return Places(_below(titles, placed), whole if isinstance(whole, int) else 1)


def _below(titles: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """Boxes of threads, then those of calls."""
    named = titles.select("row", "x0", "x1", event=pl.lit(None, dtype=pl.UInt32), track="track")
    return pl.concat([named, placed], how="vertical_relaxed")


def _merge_narrow(rows: pl.DataFrame, low: int, scale: float) -> pl.DataFrame:
    """What is narrower than a pixel becomes one box with all that begin in the same pixel of the row, named by the longest."""
    wide = ((pl.col("x1") - pl.col("x0")) * scale >= 1) | pl.col("event").is_null()
    one = pl.lit(1, dtype=pl.UInt32)
    kept = rows.filter(wide).with_columns(calls=one)
    narrow = rows.filter(~wide).with_columns(
        pixel=((pl.col("x0") - low) * scale).floor().cast(pl.Int64), long=pl.col("x1") - pl.col("x0")
    )
    merged = (
        narrow.sort("long", descending=True, maintain_order=True)
        .group_by("row", "pixel", maintain_order=True)
        .agg(pl.col("x0").min(), pl.col("x1").max(), pl.col("event", "track").first(), calls=pl.len())
        .drop("pixel")
    )
    return pl.concat([kept, merged], how="vertical_relaxed")


def _finished(trace: Trace, rows: pl.DataFrame, places: Places, shown: Span) -> Order:
    """With names and kinds; the narrowest are left out where there are too many to draw."""
    width = pl.col("x1") - pl.col("x0")
    kept = rows.sort(width, descending=True, maintain_order=True).head(FLAME_BOXES).sort("row", "x0")
    threads = host_threads(trace)
    shown_events = trace.events[kept["event"].drop_nulls().unique()]
    events = shown_events.select("id", name=pl.col("name").cast(pl.String), kind=category())
    facts = kept.join(events, left_on="event", right_on="id", how="left", maintain_order="left")
    named = facts.join(threads, on="track", how="left", maintain_order="left").with_columns(
        name=pl.when(pl.col("event").is_null()).then("thread").otherwise(pl.col("name").fill_null("")),
        kind=pl.coalesce("kind", pl.lit(THREAD)),
    )
    names = named["name"].unique(maintain_order=True)
    numbers = pl.DataFrame({"name": names, "number": pl.int_range(len(names), eager=True)})
    boxes = named.join(numbers, on="name", how="left", maintain_order="left").select(
        "row", pl.col("number").alias("name"), "x0", "x1", "calls", "event", "kind"
    )
    left_out = len(rows) - len(kept)
    return Order(names.to_list(), boxes, places.whole, shown, left_out, places.threads_left_out)
