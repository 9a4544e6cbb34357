"""What the kernels of ranks have to do: the same kernels compared launch by launch, and how many are launched, apart.

Where the host computes, ops stand for kernels, and their FLOPs for blocks; without shapes, each call counts alike.
"""

from __future__ import annotations

from hashlib import blake2b

import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.policy.ranks import GREW_WITH, MORE_WORK, SELDOM_INTERRUPTED
from stepscope.trace.frames import conform, filled, kept, take, take_median
from stepscope.trace.trace import Trace

KERNELS = {
    "rank": pl.Int32,
    "kernel": pl.UInt64,  # its name, as a number that is the same in every process
    "launches": pl.Float64,  # per step
    "blocks": pl.Float64,  # per launch
}
CALLED = {
    "rank": pl.Int32,
    "kernel": pl.UInt64,
    "launches": pl.Float64,
    "ns": pl.Float64,
    "least_ns": pl.Float64,
}  # per step, and per call: the mean, and what one takes that nothing interrupts
# Their time is waiting.
_OF_COLLECTIVES = r"^(record_param_comms|c10d::|(nccl|gloo|mpi|ucc|xccl):)"


@dataclass(frozen=True)
class Ratios:
    """Of a rank to the median of the others: blocks of the same kernels per launch, launches of all kernels."""

    blocks: float | None = None
    launches: float | None = None


def shaped(trace: Trace) -> pl.DataFrame:
    """name, step, blocks of each kernel in the steps that computes, where launch shapes are known."""
    kernels = trace.kernels[["event", "grid"]]
    kernels = kernels.drop_nulls("grid") if kernels["grid"].null_count() else kernels
    step, role, name = (take(trace.events[column], kernels["event"]) for column in ("step", "role", "name"))
    size = pl.lit(1.0)
    for axis in range(3):
        size = size * pl.col("grid").arr.get(axis).cast(pl.Float64)
    rows = kernels.select(name.cast(pl.String).alias("name"), step.alias("step"), blocks=size)
    return kept(rows, step.is_not_null() & ~filled(role == "collective"))


def shaped_ops(calls: pl.DataFrame) -> pl.DataFrame:
    """The same of `op_calls`, for a job without kernels: what ops had to compute, where shapes are known, else that they were called."""
    within = calls.filter(pl.col("step").is_not_null())
    known = within.filter(pl.col("flops") > 0)
    rows, blocks = (known, pl.col("flops")) if len(known) else (within, pl.lit(1))
    return rows.select(pl.col("name").cast(pl.String), "step", blocks=blocks.cast(pl.Float64))


def kernel_work(rows: pl.DataFrame, rank: int) -> pl.DataFrame:
    """KERNELS of the rows of `shaped`."""
    steps = max(1, rows["step"].n_unique())
    found = rows.group_by("name").agg(launches=pl.len() / steps, blocks=pl.col("blocks").mean())
    numbers = [_number(name) for name in found["name"]]
    kernel = pl.Series("kernel", numbers, dtype=pl.UInt64)
    told = found.select(kernel, pl.lit(rank).alias("rank"), "launches", "blocks")
    return conform(told, KERNELS).sort("kernel")


def count_calls(ops: pl.DataFrame, rank: int) -> pl.DataFrame:
    """CALLED of `op_calls`, where the host computes: how often a rank calls each op, and how long a call takes."""
    name = pl.col("name").cast(pl.String)
    rows = ops.filter(pl.col("step").is_not_null(), ~name.str.contains(_OF_COLLECTIVES))
    steps = max(1, rows["step"].n_unique())
    found = rows.group_by(name).agg(
        launches=pl.len() / steps,
        ns=pl.col("host_self_ns").mean(),
        least_ns=pl.col("host_self_ns").quantile(SELDOM_INTERRUPTED),
    )
    numbers = pl.Series("kernel", [_number(each) for each in found["name"]], dtype=pl.UInt64)
    rows = found.select(numbers, pl.lit(rank).alias("rank"), "launches", "ns", "least_ns")
    return conform(rows, CALLED).sort("kernel")


def calls_more(called: pl.DataFrame, rank: int) -> bool:
    """Whether what the rank computes longer is that it calls more: its calls would have taken the others as long, or half of that.

    Each call counts by the time that it takes the others, so that a rank whose every call is slow does not seem to call more.
    """
    mine, others = called.filter(pl.col("rank") == rank), called.filter(pl.col("rank") != rank)
    usual = others.group_by("kernel").agg(n=pl.col("launches").median(), usual_ns=pl.col("ns").median())
    both = mine.join(usual, on="kernel")
    took, would, typical = both.select(
        (pl.col("launches") * pl.col("ns")).sum().alias("took"),
        (pl.col("launches") * pl.col("usual_ns")).sum().alias("would"),
        (pl.col("n") * pl.col("usual_ns")).sum().alias("typical"),
    ).row(0)
    return bool(would >= MORE_WORK * typical > 0 and would - typical >= GREW_WITH * (took - typical))


def computes_on_more(called: pl.DataFrame, rank: int) -> bool:
    """Whether the rank's large calls take longer than its many small ones do: it computes on more data, a larger batch say.

    Most calls make views or look something up, whatever the batch: how long they take shows the pace of the host. A slow one is slow
    in all of them. One that shares its core is interrupted now and then, long calls more often, but not in the shortest tenth of them.
    """
    mine, others = called.filter(pl.col("rank") == rank), called.filter(pl.col("rank") != rank)
    usual = others.group_by("kernel").agg(usual_ns=pl.col("least_ns").median())
    both = mine.join(usual, on="kernel").filter(pl.col("usual_ns") > 0)
    if both.is_empty():
        return False
    ratio = pl.col("least_ns") / pl.col("usual_ns")
    calls = both.select("launches", ratio=ratio).sort("ratio").with_columns(pl.col("launches").cum_sum())
    pace = calls.filter(pl.col("launches") * 2 >= calls["launches"][-1])["ratio"][0]
    took, typical = (float((both["launches"] * both[name]).sum()) for name in ("least_ns", "usual_ns"))
    return bool(took >= MORE_WORK * max(1.0, pace) * typical > 0)


def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def ratios(kernels: pl.DataFrame, rank: int) -> Ratios:
    """How the rank's kernels compare to those of the others; a kernel that only it has shows no size."""
    mine, others = kernels.filter(pl.col("rank") == rank), kernels.filter(pl.col("rank") != rank)
    if mine.is_empty() or others.is_empty():
        return Ratios()
    usual = others.group_by("kernel").agg(n=pl.col("launches").median(), usual=pl.col("blocks").median())
    both = mine.join(usual, on="kernel")
    launches = take_median(others.group_by("rank").agg(pl.col("launches").sum())["launches"])
    as_often = both.select(
        mine=(pl.col("n") * pl.col("blocks")).sum(), usual=(pl.col("n") * pl.col("usual")).sum()
    )
    own, theirs = as_often.row(0)
    more = float(mine["launches"].sum()) / launches if launches else None
    return Ratios(own / theirs if theirs else None, more)
