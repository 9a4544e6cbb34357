"""The executions of a serving engine: phases, batch sizes, tokens, and the time between two executions.

An execution lasts as long as its annotation, or as the work launched inside it keeps the device busy, whichever is longer:
a decode step of 2 ms on the host may launch 10 ms of work that runs after it. Of nested annotations the outermost counts; what its
name leaves out comes from those inside it. Gaps are host time between an execution's end and the start of the next.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.serving.names import EXECUTION, OTHER, Execution, parse
from stepscope.analysis.steps.work import place_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import take_largest, take_median
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

EXECUTIONS = {
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "phase": pl.String,
    "batch_size": pl.Int64,
    "tokens": pl.Int64,
}
PHASES = {
    "phase": pl.String,
    "executions": pl.Int64,
    "batch_size": pl.Float64,
    "tokens": pl.Int64,
    "total_ns": pl.Int64,
    "known_ns": pl.Int64,
    "known_tokens": pl.Int64,
}


@dataclass(frozen=True)
class Gaps:
    """Host time between executions."""

    count: int
    total_ns: int
    median_ns: int | None
    span_ns: int  # from the first execution's start to the last one's end


def executions(trace: Trace) -> pl.DataFrame:
    """One row for each execution, in order of time."""
    events = trace.events
    named = is_named(events, EXECUTION) & (events["kind"] == "annotation")
    if not named.any():
        return pl.DataFrame(schema=EXECUTIONS)
    is_one = named & (trace.tracks.sort("id")["what"].gather(events["track"]) == "host").fill_null(False)
    above = ancestors(events, is_one)
    outer = events.filter(is_one & above.is_null()).sort("start_ns")
    inner = events.filter(is_one & above.is_not_null()).with_columns(
        outer=above.filter(is_one & above.is_not_null())
    )
    on_device = _device_times(trace, is_one & above.is_null())
    rows = []
    for event, name, start, length in outer.select(
        "id", pl.col("name").cast(pl.String), "start_ns", "dur_ns"
    ).iter_rows():
        inside = inner.filter(pl.col("outer") == event)["name"].cast(pl.String).to_list()
        found = _completed(name, inside)
        longest = max(length, on_device.get(event, 0))
        rows.append((start, start + length, longest, found.phase, found.batch_size, found.tokens))
    return pl.DataFrame(rows, schema=EXECUTIONS, orient="row")


def _completed(name: str, inside: list[str]) -> Execution:
    """What the outer name says; what it leaves out, as an inner one says it."""
    known = [found for found in map(parse, (name, *inside)) if found is not None]
    first = known[0]
    return Execution(
        first.engine,
        next((one.phase for one in known if one.phase != OTHER), OTHER),
        next((one.batch_size for one in known if one.batch_size is not None), None),
        next((one.tokens for one in known if one.tokens is not None), None),
    )


def _device_times(trace: Trace, outer: pl.Series) -> dict[int, int]:
    """How long the work that was launched inside each execution kept a device busy."""
    events = trace.events
    links = trace.links.filter(pl.col("why") == "launch")
    inside = ancestors(events, outer).gather(links["from"])
    start, length = (events[name].gather(links["to"]) for name in ("start_ns", "dur_ns"))
    work = pl.DataFrame({"execution": inside, "start": start, "end": start + length}).drop_nulls("execution")
    before = pl.col("end").cum_max().shift(1).over("execution").fill_null(pl.col("start"))
    busy = (pl.col("end") - pl.max_horizontal("start", before)).clip(lower_bound=0)
    times = work.sort("execution", "start").with_columns(busy=busy).group_by("execution")
    return dict(times.agg(pl.col("busy").sum()).iter_rows())


def stalled(rows: pl.DataFrame, slices: pl.DataFrame) -> pl.Series:
    """Which executions last as long as they do since the device, at one time, did not begin what was queued: no engine does that each time.

    `slices` are those of the account of the critical device.
    """
    late = slices.filter(pl.col("part") == "device_gap").select(
        "end_ns", ns=pl.col("end_ns") - pl.col("start_ns")
    )
    if rows.is_empty() or late.is_empty():
        return pl.repeat(False, len(rows), dtype=pl.Boolean, eager=True)
    inside = place_in(late["end_ns"], rows.with_columns(end_ns=pl.col("end_ns") + 1))
    longest = late.with_columns(place=inside).drop_nulls().group_by("place").agg(pl.col("ns").max())
    most = (
        rows.with_row_index("place")
        .with_columns(pl.col("place").cast(pl.Int64))
        .join(longest, on="place", how="left", maintain_order="left")
    )
    return most.select((pl.col("ns") > MAJORITY * pl.col("dur_ns")).fill_null(False)).to_series()


def phases_table(rows: pl.DataFrame, stalls: pl.Series | None = None) -> pl.DataFrame:
    """Executions, median batch size, tokens and time by phase; `known_…` are those whose tokens are known and that did not stall."""
    if rows.is_empty():
        return pl.DataFrame(schema=PHASES)
    length = pl.col("dur_ns")
    timed = pl.col("tokens").is_not_null() & ~pl.col("stalled")
    return (
        rows.with_columns(stalled=pl.lit(False) if stalls is None else stalls)
        .group_by("phase", maintain_order=True)
        .agg(
            executions=pl.len().cast(pl.Int64),
            batch_size=pl.col("batch_size").median(),
            tokens=pl.when(pl.col("tokens").count() > 0).then(pl.col("tokens").sum()),
            total_ns=length.sum(),
            known_ns=length.filter(timed).sum(),
            known_tokens=pl.col("tokens").filter(timed).sum(),
        )
        .select(list(PHASES))
        .sort("total_ns", descending=True)
    )


def gaps(rows: pl.DataFrame) -> Gaps:
    """The host time between executions."""
    if rows.is_empty():
        return Gaps(0, 0, None, 0)
    ordered = rows.sort("start_ns")
    between = (ordered["start_ns"].shift(-1) - ordered["end_ns"]).drop_nulls().clip(lower_bound=0)
    span = take_largest(ordered["end_ns"]) - int(ordered["start_ns"][0])
    median = int(take_median(between)) if len(between) else None
    return Gaps(len(between), int(between.sum()), median, span)
