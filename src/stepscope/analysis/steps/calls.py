"""The sequences in which a repetition is looked for: the calls of a thread, or the kernels of a device without a host."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.work import launches_of
from stepscope.lazy import dataclass
from stepscope.native.host import lineage as names
from stepscope.trace.lookup import is_named
from stepscope.trace.trace import Trace

# Kernels that update many weights at once. Layers have none.
_UPDATES = r"(?i)multi_tensor_apply|fused_?adam|fused_?sgd|adagrad|adam"


@dataclass(frozen=True)
class Calls:
    """The calls of one thread in time order: token, start_ns, end_ns, code, updates (the weights); and the thread."""

    rows: pl.DataFrame
    track: int
    on_device: bool = False


def tokens_of(rows: pl.DataFrame, token: pl.Series) -> pl.DataFrame:
    """The rows of calls; none updates the weights yet."""
    return rows.select(
        "start_ns", "code", end_ns=pl.col("start_ns") + pl.col("dur_ns"), token=token, updates=pl.lit(False)
    )


def device_calls(trace: Trace) -> list[Calls]:
    """The kernels of the device that computes most, if nothing is known of their launches: else the host shows the steps.

    Of all its streams, since the update of the weights may have one of its own. Communication waits for other ranks: it is the
    longest, and says least.
    """
    streams = trace.tracks.filter(pl.col("what") == "device").select("device", track="id")
    kernels = trace.events.filter(pl.col("kind") == "kernel").join(streams, on="track")
    if kernels.is_empty() or kernels["id"].is_in(launches_of(trace)["to"].implode()).any():
        return []
    computing = kernels.filter(pl.col("role").ne_missing("collective"))
    kernels = computing if len(computing) else kernels
    busiest = kernels.group_by("device").agg(pl.col("dur_ns").sum()).sort("dur_ns", "device")["device"][-1]
    mine = kernels.filter(pl.col("device").eq_missing(busiest)).sort("start_ns", maintain_order=True)
    rows = mine.with_columns(code=pl.lit(names.OP, dtype=pl.UInt8))
    updates = is_named(rows, _UPDATES)
    track = rows.group_by("track").agg(pl.col("dur_ns").sum()).sort("dur_ns", "track")["track"][-1]
    return [
        Calls(
            tokens_of(rows, rows["name"].cast(pl.String)).with_columns(updates=updates),
            int(track),
            on_device=True,
        )
    ]
