"""What passes between two pieces of work of a stream that has more to do: kernels do not follow one another at once.

Some begin before the one ahead of them has ended, where a program says that they may: then it is less than nothing.
"""

from __future__ import annotations

import polars as pl

from stepscope.registers.calibration.launches import LONGEST_QUEUE_GAP_NS, STILL_WORKING_NS
from stepscope.registers.policy.findings import GAPS_TO_KNOW_QUEUE


def queue_gaps(work: pl.DataFrame) -> pl.Series:
    """For each piece of work (stream, start, device_ns, at: when it was launched) the gap before it, in the order given.

    That of work which was not queued is the mean of those that were.
    """
    rows = (
        work.select("stream", "start", "device_ns", "at").with_row_index("row").sort("stream", "start", "row")
    )
    before = (pl.col("start") + pl.col("device_ns")).cum_max().shift(1).over("stream")
    gap = pl.col("start") - before
    queued = (pl.col("start") - pl.col("at") > STILL_WORKING_NS) & (gap < LONGEST_QUEUE_GAP_NS)
    rows = rows.with_columns(gap=pl.when(queued).then(gap))
    known = rows["gap"].drop_nulls()
    mean = float(known.mean() or 0.0) if len(known) >= GAPS_TO_KNOW_QUEUE else 0.0  # type: ignore[arg-type]
    # Work that was launched late had nothing to overlap with.
    filled = pl.col("gap").fill_null(max(0.0, mean)) if mean else pl.lit(0.0)
    least = 1 - pl.col("device_ns")
    found: pl.Series = rows.with_columns(gap=pl.max_horizontal(filled.cast(pl.Int64), least)).sort("row")[
        "gap"
    ]
    return found
