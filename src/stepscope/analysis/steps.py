"""The training steps of a trace: from markers, from a repeated annotation, or none; and where each one ends.

Device work runs behind the host. Step k ends at B_k = max(host end of k, end of the last main-stream work launched
in k) and begins at B_(k-1); B_0 = max(host start, end of the last work launched before the window). So the steps
of a device neither overlap nor leave gaps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")
_COUNTER = re.compile(r"[#\s_:/-]*\d+$")
# Annotations that frameworks make inside a step; they repeat, but they are not the step.
_INNER = re.compile(
    r"^(Optimizer\.|enumerate\(Data|DistributedDataParallel|Torch-Compiled|## |nccl:|gloo:|PyTorch Profiler)"
)


@dataclass(frozen=True)
class Steps:
    """`host`: step, start_ns, end_ns, track in time order. `windows`: device, step, start_ns, end_ns."""

    source: str  # marker, annotation or none
    name: str | None
    host: pl.DataFrame
    windows: pl.DataFrame


def find_steps(trace: Trace, step_name: str | None = None) -> Steps:
    """The steps as the host marked them, and each device's own windows of time for them."""
    source, name, host = _host_steps(trace, step_name)
    devices = devices_with_work(trace)
    frames = [_windows(trace, host, device) for device in devices] or [_contiguous(host, None)]
    return Steps(source, name, host, pl.concat(frames))


def devices_with_work(trace: Trace) -> list[int]:
    """Devices on which kernels or copies ran."""
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    busy = trace.events.filter(pl.col("kind").is_in(_WORK))["track"].unique()
    return sorted(tracks.filter(pl.col("id").is_in(busy.implode()))["device"].unique().to_list())


def _host_steps(trace: Trace, step_name: str | None) -> tuple[str, str | None, pl.DataFrame]:
    marked = trace.events.filter(pl.col("role") == "step").sort("start_ns")
    if step_name is None and len(marked):
        rows = marked.select(
            "step", "track", start_ns="start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
        )
        name = _COUNTER.sub("", str(marked["name"][0])) or None
        return "marker", name, rows.unique("step", keep="first", maintain_order=True).sort("start_ns")
    name = step_name or _repeated_annotation(trace)
    if name is None:
        return "none", None, _NO_STEPS
    return "annotation", name, _annotated(trace, name)


_NO_STEPS = pl.DataFrame(
    schema={"step": pl.Int32, "track": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}
)


def _host_annotations(trace: Trace) -> pl.DataFrame:
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    found = trace.events.filter((pl.col("kind") == "annotation") & pl.col("track").is_in(host.implode()))
    return found.with_columns(base=pl.col("name").cast(pl.String).str.replace(_COUNTER.pattern, ""))


def _repeated_annotation(trace: Trace) -> str | None:
    """The annotation that repeats and covers the most time; ties go to the one seen less often."""
    found = _host_annotations(trace).filter(
        ~pl.col("base").str.contains(_INNER.pattern), pl.col("base") != ""
    )
    ranked = (
        found.group_by("base")
        .agg(pl.len().alias("count"), pl.col("dur_ns").sum())
        .filter(pl.col("count") > 1)
        .sort(["dur_ns", "count"], descending=[True, False])
    )
    return None if ranked.is_empty() else str(ranked["base"][0])


def _annotated(trace: Trace, name: str) -> pl.DataFrame:
    found = _host_annotations(trace).filter(
        (pl.col("base") == name) | (pl.col("name").cast(pl.String) == name)
    )
    spans = found.sort("start_ns").select("track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    # A recursive annotation marks one step, its outermost call.
    outermost = spans.filter(pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1, fill_value=-(2**62)))
    return outermost.with_row_index("step").select(
        pl.col("step").cast(pl.Int32), "track", "start_ns", "end_ns"
    )


def _contiguous(
    host: pl.DataFrame, device: int | None, ends: pl.Series | None = None, first: int | None = None
) -> pl.DataFrame:
    """Windows that touch: each begins where the one before it ends."""
    if host.is_empty():
        return pl.DataFrame(
            schema={"device": pl.Int32, "step": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}
        )
    own = host["end_ns"] if ends is None else ends
    end = own.cum_max()
    begin = host["start_ns"][0] if first is None else max(first, host["start_ns"][0])
    rows = pl.DataFrame({"step": host["step"], "end_ns": end}).with_columns(
        device=pl.lit(device, dtype=pl.Int32), start_ns=pl.col("end_ns").shift(1, fill_value=begin)
    )
    return rows.select("device", "step", pl.min_horizontal("start_ns", "end_ns"), "end_ns")


def _windows(trace: Trace, host: pl.DataFrame, device: int) -> pl.DataFrame:
    if host.is_empty():
        return _contiguous(host, device)
    work = _main_stream_work(trace, device)
    by_step = work.group_by("step").agg(pl.col("end_ns").max())
    ends = host.join(by_step, on="step", how="left", suffix="_work", maintain_order="left")
    last = ends.select(pl.max_horizontal("end_ns", "end_ns_work")).to_series()
    return _contiguous(host, device, last, _backlog_end(trace, work))


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
        "id", "step", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )


def _backlog_end(trace: Trace, work: pl.DataFrame) -> int | None:
    """The end of work that was launched before the recording: it has no launch, and all that has one comes later."""
    launched = trace.links.filter(pl.col("why") == "launch")["to"]
    if launched.is_empty():
        return None
    ordered = work.sort("start_ns").with_columns(known=pl.col("id").is_in(launched.implode()))
    backlog = ordered.filter(~pl.col("known").cum_max())
    return None if backlog.is_empty() else int(backlog["end_ns"].max())  # type: ignore[arg-type]
