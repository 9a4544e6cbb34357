"""Why the device idled: each gap is charged to what the host did that kept the device empty, by name.

A gap before a kernel belongs to the thread that launched the kernel: until the launch returned, to what that thread
was doing (while it did nothing itself, to the main thread); after that, to the device. Dispatch that follows a
wait for the device is the wait's fault: the queue had run dry because of it.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.causes import host_causes, is_wait
from stepscope.analysis.steps import Steps
from stepscope.analysis.timeline import Timeline, main_track
from stepscope.trace.trace import Trace


def explain(trace: Trace, steps: Steps, work: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The gaps in slices with part, named_by and thread. `work` is in time order, `gaps` lie between it."""
    if gaps.is_empty():
        return gaps.with_columns(
            part=pl.lit(None, dtype=pl.String),
            named_by=pl.lit(None, dtype=pl.UInt32),
            thread=pl.lit(None, dtype=pl.UInt32),
        )
    main = main_track(trace, steps)
    led = _with_launch(trace, work, gaps, main)
    host, device = _split(led)
    timeline = Timeline(trace)
    named = _named(trace, timeline.cut_or_main(host, main))
    return pl.concat([_charged_to_waits(trace, named, timeline, main), device])


def _with_launch(trace: Trace, work: pl.DataFrame, gaps: pl.DataFrame, main: int) -> pl.DataFrame:
    """Each gap with the device event that ends it, and the call that launched that."""
    place = work["start_ns"].search_sorted(gaps["end_ns"], side="left")
    ended = place < len(work)
    follower = work["id"].gather(pl.select(pl.when(ended).then(place).otherwise(None)).to_series())
    launches = trace.links.filter(pl.col("why") == "launch").select(
        pl.col("from").alias("launch"), follower="to"
    )
    launches = launches.unique("follower", keep="first")
    led = (
        gaps.with_row_index("gap")
        .with_columns(follower=follower)
        .join(launches, on="follower", how="left", maintain_order="left")
    )
    events = trace.events
    return led.with_columns(
        launch_end=(events["start_ns"] + events["dur_ns"]).gather(led["launch"]),
        launch_track=events["track"].gather(led["launch"]).fill_null(main),
        follower_track=events["track"].gather(led["follower"]),
    )


def _split(led: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The host's share of each gap, up to the end of the launch, and the device's share after it."""
    edge = pl.coalesce("launch_end", "end_ns").clip(pl.col("start_ns"), pl.col("end_ns"))
    led = led.with_columns(edge=edge)
    host = led.filter(pl.col("start_ns") < pl.col("edge")).select(
        "gap", "start_ns", end_ns="edge", track="launch_track"
    )
    device = led.filter(pl.col("edge") < pl.col("end_ns")).select(
        "end_ns", start_ns="edge", part=pl.lit("device_gap"), named_by="follower", thread="follower_track"
    )
    return host, device.select("start_ns", "end_ns", "part", "named_by", "thread")


def _named(trace: Trace, pieces: pl.DataFrame) -> pl.DataFrame:
    causes = host_causes(trace)
    cause = causes["cause"].gather(pieces["event"])
    named_by = causes["named_by"].gather(pieces["event"])
    return pieces.with_columns(
        part=cause.fill_null("unexplained"),
        named_by=pl.select(pl.coalesce(named_by, pieces["event"])).to_series(),
    )


def _charged_to_waits(trace: Trace, pieces: pl.DataFrame, timeline: Timeline, main: int) -> pl.DataFrame:
    """In a gap that began while the host waited for the device, dispatch and nothing-at-all belong to that wait."""
    begins = pieces.group_by("gap").agg(pl.col("start_ns").min(), pl.col("track").first())
    probes = pl.concat([begins, begins.with_columns(track=pl.lit(main, dtype=pl.UInt32))]).unique(
        ["gap", "track"]
    )
    at_begin = timeline.cut(probes.select("gap", "start_ns", end_ns=pl.col("start_ns") + 1, track="track"))
    waits = is_wait(trace)
    found = at_begin.filter(waits.gather(at_begin["event"]).fill_null(False)).unique("gap", keep="first")
    blame = host_causes(trace)["named_by"].gather(found["event"])
    joined = pieces.join(
        found.select("gap", blamed=blame, wait_track="track"), on="gap", how="left", maintain_order="left"
    )
    charged = pl.col("blamed").is_not_null() & pl.col("part").is_in(["dispatch", "unexplained"])
    return joined.select(
        "start_ns",
        "end_ns",
        part=pl.when(charged).then(pl.lit("sync")).otherwise(pl.col("part")),
        named_by=pl.when(charged).then(pl.col("blamed")).otherwise(pl.col("named_by")),
        thread=pl.when(charged).then(pl.col("wait_track")).otherwise(pl.col("track")),
    )
