"""The device work of the steps: what ran in their windows, cut at their edges.

Tables and shares are made of it, so that they cover the same time of a device as the account does.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.work import DEVICE_WORK, time_before
from stepscope.trace.trace import Trace


def cut_to_windows(trace: Trace, windows: pl.DataFrame, step: pl.Series) -> pl.DataFrame:
    """The events, in which device work has the step it ran in and the time that it ran inside the windows.

    `step` is that of each event of the host. Work outside the windows has no step and takes no time.
    """
    events = trace.events
    devices = trace.tracks["device"].gather(events["track"])
    is_work = events["kind"].is_in(DEVICE_WORK) & devices.is_not_null()
    work = events.select("id", "start_ns", "dur_ns", device=devices).filter(is_work)
    parts = [
        _in_windows(rows, windows.filter(pl.col("device") == device).sort("start_ns"))
        for (device,), rows in work.group_by("device", maintain_order=True)
    ]
    if not parts:
        return events.with_columns(step=step)
    found = pl.concat(parts)
    steps = step.scatter(found["id"], found["step"])
    return events.with_columns(
        step=steps,
        start_ns=events["start_ns"].scatter(found["id"], found["start_ns"]),
        dur_ns=events["dur_ns"].scatter(found["id"], found["dur_ns"]),
    )


def _in_windows(work: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """id, step, start_ns, dur_ns: the first window that the work reaches into, and its time in all of them."""
    end = work["start_ns"] + work["dur_ns"]
    if windows.is_empty():
        return work.select(
            "id",
            pl.lit(None, dtype=pl.Int32).alias("step"),
            "start_ns",
            pl.lit(0, dtype=pl.Int64).alias("dur_ns"),
        )
    place = windows["end_ns"].search_sorted(work["start_ns"], side="right").cast(pl.Int64)
    near = place.clip(upper_bound=len(windows) - 1)
    begin = windows["start_ns"].gather(near)
    reaches = (place < len(windows)) & ((begin < end) | ((begin <= work["start_ns"]) & (work["dur_ns"] == 0)))
    inside = time_before(end, windows) - time_before(work["start_ns"], windows)
    start = pl.select(
        pl.when(reaches).then(pl.max_horizontal(work["start_ns"], begin)).otherwise(work["start_ns"])
    )
    return pl.DataFrame(
        {
            "id": work["id"],
            "step": pl.select(pl.when(reaches).then(windows["step"].gather(near))).to_series().cast(pl.Int32),
            "start_ns": start.to_series(),
            "dur_ns": inside,
        }
    )
