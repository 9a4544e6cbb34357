"""The work of a recording, by when it was launched: what steps have to account for."""

from __future__ import annotations

import polars as pl

from stepscope.native.spans import slices as native
from stepscope.trace.columns import buffer, rows_or_null
from stepscope.trace.frames import kept, take
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

DEVICE_WORK = ("kernel", "copy", "memset")
_SCHEMA = {"id": pl.UInt32, "at_ns": pl.Int64, "start_ns": pl.Int64, "ns": pl.Int64, "launch": pl.UInt32}


@kept_with_trace
def launches_of(trace: Trace) -> pl.DataFrame:
    """from, to: the call that launched each event of a device; found once for each trace."""
    links = trace.links
    return kept(links[["from", "to"]], links["why"] == "launch").unique("to", keep="first")


def recorded_work(trace: Trace) -> pl.DataFrame:
    """id, at_ns, start_ns, ns, launch of all device work, or of the outermost ops where there is no device.

    `at_ns` is when it was launched, or when it began where no launch is known. Work that was launched before the
    recording is left out: it has no launch, and all that has one comes later.
    """
    on_device = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())["id"]
    is_work = pl.col("kind").is_in(DEVICE_WORK) & pl.col("track").is_in(on_device.implode())
    work = trace.events.lazy().filter(is_work).select("id", "track", "start_ns", ns="dur_ns").collect()
    if work.is_empty():
        return _host_work(trace)
    launches = launches_of(trace)
    launched = work.join(launches.rename({"from": "launch", "to": "id"}), on="id", how="left")
    at = take(trace.events["start_ns"], launched["launch"])
    found = launched.with_columns(at_ns=pl.coalesce(at, pl.col("start_ns")))
    return _without_backlog(found).select(list(_SCHEMA))


def _without_backlog(work: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("launch").is_not_null()
    if work["launch"].null_count() in (0, len(work)):
        return work
    first = pl.col("start_ns").filter(known).min().over("track")
    return work.filter(known | (pl.col("start_ns") >= first).fill_null(True))


def _host_work(trace: Trace) -> pl.DataFrame:
    events = trace.events
    is_op = events["kind"] == "op"
    outermost = is_op & ancestors(events, is_op).is_null()
    return events.filter(outermost & (events["dur_ns"] > 0)).select(
        "id", pl.col("start_ns").alias("at_ns"), "start_ns", ns="dur_ns", launch=pl.lit(None, dtype=pl.UInt32)
    )


def place_in(times: pl.Series, spans: pl.DataFrame) -> pl.Series:
    """For each time the row of the span that holds it, or null. The spans are in order and do not overlap."""
    if spans.is_empty():
        return pl.repeat(None, len(times), dtype=pl.Int64, eager=True).alias("place")
    rows = native.place(buffer(times), buffer(spans["start_ns"]), buffer(spans["end_ns"]))
    found: pl.Series = rows_or_null("place", rows).cast(pl.Int64)
    return found


def time_before(times: pl.Series, spans: pl.DataFrame) -> pl.Series:
    """How much of the spans, which are in order and do not overlap, is before each time."""
    length = spans["end_ns"] - spans["start_ns"]
    done = pl.concat([pl.Series([0], dtype=pl.Int64), length.cum_sum()])
    begun = spans["start_ns"].search_sorted(times, side="left").cast(pl.Int64)
    last = (begun - 1).clip(lower_bound=0)
    over = (spans["end_ns"].gather(last) - times).clip(lower_bound=0)
    found = pl.when(begun > 0).then(done.gather(begun) - over).otherwise(0).cast(pl.Int64)
    return pl.select(found).to_series()


def busy_time(trace: Trace) -> int:
    """How long the devices of the recording had any work, summed over them."""
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    is_work = pl.col("kind").is_in(DEVICE_WORK)
    work = trace.events.lazy().filter(is_work).select("track", "start_ns", "dur_ns").collect()
    ends = (
        work.join(tracks.select("device", track="id"), on="track")
        .select("device", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .sort("device", "start_ns")
    )
    reached = pl.col("end_ns").cum_max().shift(1).over("device").fill_null(-(2**62))
    return int(
        ends.select(
            (pl.col("end_ns") - pl.max_horizontal("start_ns", reached)).clip(lower_bound=0).sum()
        ).item()
        or 0
    )
