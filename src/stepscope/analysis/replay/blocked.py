"""Launches that waited for room in a full queue of the device: the device's time, not the host's.

Such a launch takes many times as long as others. Where the host is far ahead most launches wait, and the median is that of the
blocked ones: there each is compared with the quickest of its own kind, which found room.
"""

from __future__ import annotations

import polars as pl

from stepscope.registers.calibration.launches import BLOCKED_LAUNCH_NS, FULL_QUEUE_TIMES
from stepscope.registers.levels import IDLE_LAUNCH_QUANTILE
from stepscope.trace.frames import take_median
from stepscope.trace.trace import Trace


def full_queue(trace: Trace) -> tuple[pl.Series, int]:
    """Whether each event is a launch that waited for room, and what launches usually take."""
    events = trace.events
    links = trace.links.filter(pl.col("why") == "launch").select(call="from", work="to")
    links = links.with_columns(begun=events["start_ns"].gather(links["work"]))
    calls = links.group_by("call", maintain_order=True).agg(pl.col("begun").min())
    calls = calls.with_columns(
        *(events[name].gather(calls["call"]) for name in ("name", "start_ns", "dur_ns"))
    )
    full, usual = blocked(calls)
    return pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(
        calls["call"].filter(full), True
    ), usual


def blocked(calls: pl.DataFrame) -> tuple[pl.Series, int]:
    """Which of the calls (name, start_ns, dur_ns, and when their work has `begun`) waited, and the median of the others.

    A call may have waited as long as what was launched before it had not begun when it was over.
    """
    usual = take_median(calls["dur_ns"])
    long = calls["dur_ns"] > max(FULL_QUEUE_TIMES * usual, BLOCKED_LAUNCH_NS)
    rows = calls.select("name", "start_ns", "dur_ns", "begun").with_row_index("row").sort("start_ns")
    quick = pl.col("dur_ns").quantile(IDLE_LAUNCH_QUANTILE, "lower").over("name")
    is_behind = pl.col("begun").shift(1) >= pl.col("start_ns") + pl.col("dur_ns")
    is_longer = pl.col("dur_ns") > pl.max_horizontal(FULL_QUEUE_TIMES * quick, BLOCKED_LAUNCH_NS)
    found = rows.select("row", full=is_behind & is_longer).sort("row")["full"].fill_null(False)
    if not (found & ~long).any():
        return long, int(usual)
    both = long | found
    return both, int(take_median(calls["dur_ns"].filter(~both)))
