"""Where each step begins and ends on a device, and which step an event belongs to.

Device work runs behind the host. Step k ends at B_k = max(host end of k, end of the last main-stream work launched
in k) and begins at B_(k-1); B_0 = max(host start, end of the last work launched before the window). So the steps
of a device neither overlap nor leave gaps.
"""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.steps import PARTIAL_STEP
from stepscope.trace.frames import take_largest, take_median
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")
_SCHEMA = {
    "device": pl.Int32,
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "partial": pl.Boolean,
}


def step_windows(trace: Trace, host: pl.DataFrame, partial: pl.Series) -> pl.DataFrame:
    """device, step, start_ns, end_ns, partial: windows that touch, for each device with work, or one for the host."""
    if host.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    numbered = host.with_columns(partial=partial)
    devices = devices_with_work(trace)
    frames = [_of_device(trace, numbered, device) for device in devices]
    return pl.concat(frames or [_contiguous(numbered, None, numbered["end_ns"], None)])


def devices_with_work(trace: Trace) -> list[int]:
    """Devices on which kernels or copies ran."""
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    busy = trace.events.filter(pl.col("kind").is_in(_WORK))["track"].unique()
    return sorted(tracks.filter(pl.col("id").is_in(busy.implode()))["device"].unique().to_list())


def steps_of_events(trace: Trace, host: pl.DataFrame) -> pl.Series:
    """The step of each event: that in which its launch began, or without a launch, it itself."""
    start = trace.events["start_ns"]
    launches = _launches(trace)
    return _step_at(start.scatter(launches["to"], start.gather(launches["from"])), host)


def _launches(trace: Trace) -> pl.DataFrame:
    return trace.links.filter(pl.col("why") == "launch").select("from", "to").unique("to", keep="first")


def _step_at(times: pl.Series, host: pl.DataFrame) -> pl.Series:
    if host.is_empty():
        return pl.repeat(None, len(times), dtype=pl.Int32, eager=True).alias("step")
    index = host["start_ns"].search_sorted(times, side="right").cast(pl.Int64) - 1
    place = index.clip(lower_bound=0)
    inside = (index >= 0) & (times < host["end_ns"].gather(place))
    step = pl.when(inside).then(host["step"].gather(place)).cast(pl.Int32)
    return pl.select(step.alias("step")).to_series()


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
    work = _main_stream_work(trace, device)
    launches = _launches(trace).select(launch="from", id="to")
    launch = work.join(launches, on="id", how="left", maintain_order="left")["launch"]
    known = pl.coalesce(trace.events["start_ns"].gather(launch), work["start_ns"])
    work = work.with_columns(step=_step_at(pl.select(known).to_series(), host))
    by_step = work.group_by("step").agg(pl.col("end_ns").max())
    ends = host.join(by_step, on="step", how="left", suffix="_work", maintain_order="left")
    last = ends.select(pl.max_horizontal("end_ns", "end_ns_work")).to_series()
    return _contiguous(host, device, last, _backlog_end(trace, work))


def _contiguous(
    host: pl.DataFrame, device: int | None, ends: pl.Series, backlog_end: int | None
) -> pl.DataFrame:
    """Windows that touch: each begins where the one before it ends."""
    begin = int(host["start_ns"][0])
    begin = begin if backlog_end is None else max(begin, backlog_end)
    end = ends.cum_max().clip(lower_bound=begin)
    return pl.DataFrame({"step": host["step"], "end_ns": end, "partial": host["partial"]}).select(
        pl.lit(device, dtype=pl.Int32).alias("device"),
        "step",
        pl.col("end_ns").shift(1, fill_value=begin).alias("start_ns"),
        "end_ns",
        "partial",
    )


def _main_stream_work(trace: Trace, device: int) -> pl.DataFrame:
    """Work on the stream of the device that computes most."""
    streams = trace.tracks.filter((pl.col("what") == "device") & (pl.col("device") == device))["id"]
    work = trace.events.filter(pl.col("kind").is_in(_WORK) & pl.col("track").is_in(streams.implode()))
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


def _backlog_end(trace: Trace, work: pl.DataFrame) -> int | None:
    """The end of work that was launched before the recording: it has no launch, and all that has one comes later."""
    launched = trace.links.filter(pl.col("why") == "launch")["to"]
    if launched.is_empty():
        return None
    ordered = work.sort("start_ns").with_columns(known=pl.col("id").is_in(launched.implode()))
    backlog = ordered.filter(~pl.col("known").cum_max())
    return None if backlog.is_empty() else take_largest(backlog["end_ns"])
