"""Communication between ranks: per operation, group and type how often, how much, how long, how much of it exposed.

Device collectives are the kernels of NCCL, RCCL, XLA, symmetric memory and hand-written all-reduces; host collectives
are those of gloo, MPI and UCC, which run on threads. Message size is that of the whole operation (an all-gather's output,
a reduce-scatter's input). Algorithm bandwidth is bytes / time; bus bandwidth scales it by what each rank must send
at least, so that it compares to the links: all-reduce 2(n-1)/n; all-gather, reduce-scatter and all-to-all (n-1)/n;
broadcast, reduce, send and receive 1. A kernel's time includes its wait for late ranks, so both are lower bounds.
Exposed is time in which the collective ran and nothing was computed; the rest was overlapped. The exposed share of the
steps also has the host's time in the calls that asked for host collectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.lazy import dataclass
from stepscope.trace.frames import filled
from stepscope.trace.trace import Trace

_KEYS = ("name", "group", "group_size", "dtype")
_ROUND_TRIP = ("all_reduce",)
_ONE_WAY = ("all_gather", "reduce_scatter", "all_to_all")
_PLAIN = ("broadcast", "reduce", "send_recv", "send", "recv")


@dataclass(frozen=True)
class Collectives:
    """`rows` of the report, and the sums behind its shares, which can be added over ranks."""

    rows: pl.DataFrame
    exposed_ns: int
    step_ns: int
    collective_kernel_ns: int
    kernel_ns: int

    @property
    def exposed_share(self) -> float | None:
        """Of step time; None without steps."""
        return self.exposed_ns / self.step_ns if self.step_ns else None

    @property
    def kernel_share(self) -> float | None:
        """Of the time of all kernels; None without kernels."""
        return self.collective_kernel_ns / self.kernel_ns if self.kernel_ns else None


def collectives(trace: Trace, account: Account, calls: pl.DataFrame | None = None) -> Collectives:
    """Everything about communication in the steps, or in the whole trace where it has none; `calls` where known."""
    calls = collective_calls(trace, account) if calls is None else calls
    return with_shares(trace, account, collective_rows(calls))


def with_shares(trace: Trace, account: Account, rows: pl.DataFrame) -> Collectives:
    """The rows with the sums behind the shares."""
    slices, events = account.slices, trace.events
    length = slices["end_ns"] - slices["start_ns"]
    exposed = (slices["part"] == "collective") | (slices["part"] == "host_collective")
    counts = events["kind"] == "kernel"
    if events["step"].count():
        counts &= events["step"].is_not_null()
    ours = counts & filled(events["role"] == "collective")
    return Collectives(
        rows=rows,
        exposed_ns=int(length.filter(exposed).sum()),
        step_ns=int(length.sum()),
        collective_kernel_ns=int(events["dur_ns"].filter(ours).sum()),
        kernel_ns=int(events["dur_ns"].filter(counts).sum()),
    )


def collective_rows(calls: pl.DataFrame) -> pl.DataFrame:
    """Rows of the report's collectives, the longest in total first; calls of several ranks can be concatenated."""
    return added_rows([collective_sums(calls)])


def collective_sums(calls: pl.DataFrame) -> pl.DataFrame:
    """What the rows are made of, as sums that can be added up over ranks."""
    sized = pl.col("bytes").is_not_null() & (pl.col("dur_ns") > 0)
    return calls.group_by(_KEYS, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("calls"),
        pl.col("bytes").sum(),
        pl.col("bytes").count().cast(pl.Int64).alias("known"),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.col("exposed_ns").sum(),
        (pl.col("dur_ns") - pl.col("exposed_ns")).clip(0).sum().alias("overlapped_ns"),
        pl.col("bytes").filter(sized).sum().alias("sized_bytes"),
        pl.col("dur_ns").filter(sized).sum().alias("sized_ns"),
    )


def added_rows(sums: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows of the report's collectives from the sums of one or many ranks."""
    added = pl.concat(sums).group_by(_KEYS, maintain_order=True).agg(pl.all().sum())
    grouped = added.select(
        *_KEYS,
        "calls",
        pl.when(pl.col("known") > 0).then("bytes").alias("bytes"),
        "total_ns",
        "exposed_ns",
        "overlapped_ns",
        algorithm_gb_per_s=pl.col("sized_bytes") / pl.col("sized_ns"),
    )
    told = pl.when(pl.col("algorithm_gb_per_s").is_finite() & (pl.col("bytes") > 0)).then(
        "algorithm_gb_per_s"
    )
    rows = grouped.with_columns(algorithm_gb_per_s=told)
    rows = rows.with_columns(bus_gb_per_s=pl.col("algorithm_gb_per_s") * bus_factor())
    return rows.sort("total_ns", descending=True, maintain_order=True)


def bus_factor(members: str = "group_size") -> pl.Expr:
    """What each rank must send at least, of the operation's size; null where the group's size is not known."""
    n = pl.col(members).cast(pl.Float64)
    least = (n - 1) / n
    name = pl.col("name")
    return (
        pl.when(n < 2)
        .then(None)
        .when(name.is_in(_ROUND_TRIP))
        .then(2 * least)
        .when(name.is_in(_ONE_WAY))
        .then(least)
        .when(name.is_in(_PLAIN))
        .then(1.0)
    )
