"""How long calls ran while nothing computed: two collectives that run at once do not hide each other."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.native.spans.sets import union
from stepscope.trace.columns import buffer, series

_PARTS = ("collective", "host_collective")


def exposed_time(account: Account, calls: pl.DataFrame, device: pl.Series) -> pl.Series:
    """ns of each call (start_ns, dur_ns) in communication that nothing hides: on its device, for calls of the host on any."""
    slices = account.slices.filter(pl.col("part").is_in(_PARTS))
    rows = calls.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), device=device)
    found = pl.repeat(0, len(rows), dtype=pl.Int64, eager=True)
    for number in rows["device"].unique().to_list():
        mine = rows["device"].eq_missing(pl.Series([number], dtype=rows["device"].dtype))
        own = slices if number is None else slices.filter(pl.col("device") == number)
        spans = rows.filter(mine)
        found = found.scatter(
            mine.arg_true(), _before(own, spans["end_ns"]) - _before(own, spans["start_ns"])
        )
    return found


def _before(slices: pl.DataFrame, times: pl.Series) -> pl.Series:
    """How much of the slices is before each time."""
    ordered = slices.sort("start_ns")
    starts, ends = union(buffer(ordered["start_ns"]), buffer(ordered["end_ns"]))
    start, end = series("start_ns", starts, pl.Int64), series("end_ns", ends, pl.Int64)
    if start.is_empty():
        return pl.repeat(0, len(times), dtype=pl.Int64, eager=True)
    done = pl.concat([pl.Series([0], dtype=pl.Int64), (end - start).cum_sum()])
    begun = start.search_sorted(times, side="left").cast(pl.Int64)
    last = (begun - 1).clip(0)
    within = (
        pl.DataFrame({"end": end.gather(last), "at": times}).min_horizontal() - start.gather(last)
    ).clip(0)
    return pl.select(pl.when(begun > 0).then(done.gather(last) + within).otherwise(0)).to_series()
