"""Where each step begins and ends on a device, and which step an event belongs to.

Device work runs behind the host. Step k ends at B_k = max(host end of k, end of the last main-stream work launched
in k) and begins at B_(k-1). The first one, and one that does not follow at once on the step before it, begins where the
host does, or at the end of the main-stream work that was launched before it; if its own work begins so much later
that the device was clearly busy with something that was not recorded, it begins with that work. Only work without a launch goes
by the time it ran. So the steps of a device never overlap. Without a device, the programs that the host's own threads run behind
the calls of JAX take its place.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.host_runs import host_runs, with_runs
from stepscope.analysis.steps.work import DEVICE_WORK, launches_of, place_in, time_before
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import PARTIAL_STEP
from stepscope.trace.frames import take, take_largest, take_median
from stepscope.trace.trace import Trace

WINDOWS = {
    "device": pl.Int32,
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "partial": pl.Boolean,
}


def step_windows(trace: Trace, host: pl.DataFrame, begins: pl.Series) -> pl.DataFrame:
    """device, step, start_ns, end_ns, partial: a row for each step and device with work, or one for the host.

    `begins`: where each step begins on the host, with what leads up to it.
    """
    if host.is_empty():
        return pl.DataFrame(schema=WINDOWS)
    rows = host.with_columns(begin_ns=begins)
    frames = [_of_device(trace, rows, device) for device in devices_with_work(trace)]
    if not frames:
        first, last = with_runs(trace, host, begins)
        frames = [_chained(rows, None, last, first)]
    return pl.concat(frames).filter(pl.col("start_ns") < pl.col("end_ns"))


def plain_windows(trace: Trace, host: pl.DataFrame) -> pl.DataFrame:
    """The steps as the host has them, on each device with work."""
    devices: list[int | None] = [*devices_with_work(trace)] or [None]
    rows = pl.DataFrame({"device": devices}, schema={"device": pl.Int32}).join(host, how="cross")
    return rows.with_columns(partial=pl.lit(False)).select(list(WINDOWS))


def devices_with_work(trace: Trace) -> list[int]:
    """Devices on which kernels or copies ran."""
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    events = trace.events
    busy = events["track"].filter(events["kind"].is_in(DEVICE_WORK)).unique()
    return sorted(tracks.filter(pl.col("id").is_in(busy.implode()))["device"].unique().to_list())


def steps_of_events(trace: Trace, host: pl.DataFrame, windows: pl.DataFrame | None = None) -> pl.Series:
    """The step of each event: that in which its launch began, or without a launch, it itself.

    Where threads of the host run programs behind it, what is not on the thread that calls them is of the window that it runs in.
    """
    start = trace.events["start_ns"]
    launches = launches_of(trace)
    called = _step_at(start.scatter(launches["to"], take(start, launches["from"])), host)
    if windows is None or windows["device"].count() or host_runs(trace).is_empty():
        return called
    calling = trace.events["track"] == int(host["track"][0])
    run = _step_at(start, windows)
    return pl.select(pl.when(calling).then(called).otherwise(run)).to_series().alias("step")


def _step_at(times: pl.Series, host: pl.DataFrame) -> pl.Series:
    step: pl.Series = take(host["step"], place_in(times, host)).cast(pl.Int32).alias("step")
    return step


def partial_steps(trace: Trace, host: pl.DataFrame) -> pl.Series:
    """Whether a step is the first or last one and holds less than half of what the others hold."""
    # Our own capture marks a step only once it ended; sampled stacks would make whole steps look thin.
    if len(host) < 2 or trace.info.capture.get("last_step") is not None:
        return pl.repeat(False, len(host), dtype=pl.Boolean, eager=True)
    held = _events_in(trace, host)
    inner = held[1:-1] if len(held) > 2 else held
    usual = take_median(inner) if len(held) > 2 else take_largest(inner)
    place = pl.int_range(len(held), eager=True)
    at_an_end = (place == 0) | (place == len(held) - 1)
    few: pl.Series = at_an_end & (held < PARTIAL_STEP * usual)
    return few


def _events_in(trace: Trace, host: pl.DataFrame) -> pl.Series:
    """How many events began in each step on the thread that marks them."""
    tracks, track = trace.events["track"], int(host["track"][0])
    first, last = tracks.search_sorted(track, side="left"), tracks.search_sorted(track, side="right")
    start = trace.events["start_ns"][first:last]
    held: pl.Series = start.search_sorted(host["end_ns"], side="left").cast(pl.Int64) - start.search_sorted(
        host["start_ns"], side="right"
    ).cast(pl.Int64)
    return held


def _of_device(trace: Trace, host: pl.DataFrame, device: int) -> pl.DataFrame:
    work = _with_launches(trace, _main_stream_work(trace, device))
    work = work.with_columns(place=place_in(work["at_ns"], host))
    mine = (
        work.drop_nulls("place")
        .group_by("place")
        .agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max())
    )
    rows = host.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64)).join(
        mine, on="place", how="left", maintain_order="left"
    )
    ends = rows.select(pl.max_horizontal("end_ns", "last")).to_series()
    return _chained(host, device, ends, _begins(rows, work))


def _begins(rows: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """Where each step may begin on the device, were there no step before it."""
    ran_ahead = pl.col("first") - pl.col("end_ns") > pl.col("end_ns") - pl.col("start_ns")
    begin = pl.when(ran_ahead.fill_null(False)).then("first").otherwise("begin_ns")
    begins = rows.select(pl.max_horizontal(begin, pl.lit(_backlog(rows, work)))).to_series()
    # A step that follows at once on the one before it begins where that ends, however late its work is.
    follows = rows["begin_ns"] <= rows["end_ns"].shift(1)
    return pl.select(pl.when(follows.fill_null(False)).then(rows["begin_ns"]).otherwise(begins)).to_series()


def _backlog(rows: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """For each step the end of the main-stream work that was launched before it, in no step, if it keeps the device busy."""
    elsewhere = work.filter(pl.col("place").is_null() | pl.col("before_recording"))
    if elsewhere.is_empty():
        return rows["begin_ns"]
    at = pl.when("before_recording").then(-(2**62)).otherwise("at_ns")
    launched = elsewhere.select("end_ns", at_ns=at).sort("at_ns")
    place = launched["at_ns"].search_sorted(rows["begin_ns"], side="left").cast(pl.Int64) - 1
    reached = launched["end_ns"].cum_max().gather(place.clip(lower_bound=0))
    before = place < len(elsewhere.filter("before_recording"))
    busy = time_before(reached, elsewhere) - time_before(rows["begin_ns"], elsewhere)
    holds = (place >= 0) & (before | (busy > MAJORITY * (reached - rows["begin_ns"])))
    return pl.select(pl.when(holds).then(reached).otherwise(rows["begin_ns"])).to_series()


def _chained(host: pl.DataFrame, device: int | None, ends: pl.Series, begins: pl.Series) -> pl.DataFrame:
    """Each window begins where the one before it ends, or later."""
    end = pl.DataFrame({"end": ends, "begin": begins}).select(
        pl.max_horizontal(pl.col("end"), pl.col("begin").first()).cum_max()
    )
    before = end.to_series().shift(1, fill_value=-(2**62))
    return pl.DataFrame({"step": host["step"], "end_ns": end.to_series()}).select(
        pl.lit(device, dtype=pl.Int32).alias("device"),
        "step",
        pl.max_horizontal(begins, before).alias("start_ns"),
        "end_ns",
        pl.lit(False).alias("partial"),
    )


def _with_launches(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """The work with `at_ns`, when it was launched, and whether that was before the recording."""
    launches = launches_of(trace).rename({"from": "launch", "to": "id"})
    known = work.join(launches, on="id", how="left", maintain_order="left").sort("start_ns")
    at = pl.coalesce(take(trace.events["start_ns"], known["launch"]), known["start_ns"])
    # It has no launch, and all that has one comes later.
    unknown = known["launch"].is_null() & ~known["launch"].is_not_null().cum_max()
    before = unknown if known["launch"].count() else unknown & False
    return known.with_columns(pl.select(at).to_series().alias("at_ns"), before.alias("before_recording"))


def _main_stream_work(trace: Trace, device: int) -> pl.DataFrame:
    """Work on the stream of the device that computes most."""
    streams = trace.tracks.filter((pl.col("what") == "device") & (pl.col("device") == device))["id"]
    is_work = pl.col("kind").is_in(DEVICE_WORK) & pl.col("track").is_in(streams.implode())
    columns = ["id", "track", "kind", "role", "start_ns", "dur_ns"]
    work = trace.events.lazy().filter(is_work).select(columns).collect()
    kernels = work.filter((pl.col("kind") == "kernel") & (pl.col("role") != "collective").fill_null(True))
    busiest = (
        (kernels if len(kernels) else work)
        .group_by("track")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "track")
    )
    main = busiest["track"][-1]
    return work.filter(pl.col("track") == main).select(
        "id", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
