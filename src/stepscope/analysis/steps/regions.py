"""Regions: parts of a loop that the capture recorded on their own, such as `collect` and `train` of an agent.

The sidecar names the region of each marked step. The steps of one region are one population: they do not touch, since
what ran between them was not recorded, and steps of two regions are never compared or averaged. On a device a pass
through a region lasts from the marker's begin to the end of the last work that was launched in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.analysis.steps.windows import devices_with_work, steps_of_events
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


def region_of_steps(trace: Trace) -> pl.DataFrame:
    """step, region: the region of each pass that the sidecar lists; empty where regions were off."""
    noted = trace.info.capture.get("regions")
    found = noted if isinstance(noted, dict) else {}
    names, which, first = found.get("names"), found.get("which"), found.get("first")
    known = list(names) if isinstance(names, list) else []
    start = first if isinstance(first, int) else None
    rows = [
        (start + place, str(known[one]))
        for place, one in enumerate(which if isinstance(which, list) else ())
        if start is not None and isinstance(one, int) and 0 <= one < len(known)
    ]
    listed = pl.DataFrame(rows, schema={"step": pl.Int64, "region": pl.String}, orient="row")
    return listed.with_columns(pl.col("step").cast(pl.Int32, strict=False)).drop_nulls()


def in_regions(marked: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """The marked steps (step, track, start_ns, end_ns) that are passes through a region, with its name."""
    if marked.is_empty():
        return marked.with_columns(region=pl.lit(None, pl.String))
    return marked.join(region_of_steps(trace), on="step", how="inner", maintain_order="left")


def region_times(passes: pl.DataFrame) -> dict[str, int]:
    """Each region and the time in it, the longest first."""
    if passes.is_empty():
        return {}
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    total = passes.group_by("region").agg(ns=length).sort("ns", "region", descending=[True, False])
    return dict(zip(total["region"].to_list(), total["ns"].to_list(), strict=True))


def agree_on_region(ranks: Sequence[Mapping[str, int]]) -> str | None:
    """The region for all ranks, by the times in each one's regions: of those that most ranks have, the longest."""
    having, times = Counter[str](), Counter[str]()
    for rank in ranks:
        having.update(rank.keys())
        times.update(rank)
    return min(times, key=lambda name: (-having[name], -times[name], name), default=None)


def choose_region(regions: list[str], wanted: str | None, agreed: str | None = None) -> str | None:
    """The region of this name, else the first that the pattern matches; without a wish the agreed one, or the longest."""
    if wanted is None:
        return agreed if agreed in regions else next(iter(regions), None)
    if wanted in regions:
        return wanted
    try:
        return next((name for name in regions if re.fullmatch(wanted, name)), None)
    except re.error:
        return None


def region_windows(trace: Trace, passes: pl.DataFrame) -> pl.DataFrame:
    """device, step, start_ns, end_ns, partial of all passes, for each device with work, or for the host. They do not touch."""
    devices: list[int | None] = [*devices_with_work(trace)] or [None]
    ends = _work_ends(trace, passes)
    return pl.concat([_of_device(passes, ends, device) for device in devices])


def _work_ends(trace: Trace, passes: pl.DataFrame) -> pl.DataFrame:
    """device, step, work_end: when the last work that was launched in the pass ended."""
    tracks = trace.tracks.filter(pl.col("what") == "device").select(track="id", device="device")
    work = trace.events.with_columns(step=steps_of_events(trace, passes)).filter(
        pl.col("kind").is_in(_WORK), pl.col("step").is_not_null()
    )
    end = (pl.col("start_ns") + pl.col("dur_ns")).max()
    return work.join(tracks, on="track").group_by("device", "step").agg(work_end=end)


def _of_device(passes: pl.DataFrame, ends: pl.DataFrame, device: int | None) -> pl.DataFrame:
    mine = ends.filter(pl.col("device").eq_missing(device)).select("step", "work_end")
    rows = passes.join(mine, on="step", how="left", maintain_order="left")
    end = pl.max_horizontal("end_ns", "work_end").cum_max()
    # Work of one pass may still run when the next one begins, where the capture was asked not to wait for it.
    begin = pl.max_horizontal("start_ns", end.shift(1, fill_value=-(2**62)))
    return rows.select(
        pl.lit(device, dtype=pl.Int32).alias("device"),
        "step",
        begin.alias("start_ns"),
        pl.max_horizontal(end, begin + 1).alias("end_ns"),
        pl.lit(False).alias("partial"),
    )
