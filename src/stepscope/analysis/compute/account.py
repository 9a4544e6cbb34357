"""The account of compute: ideal time by the roofline of each kernel's work, and what is lost, by reason.

Reasons: `matmul` (products, convolutions and attention below their peak), `traffic` (tensors between kernels that fusion would
keep on chip), `recomputed`, `small` (kernels too short to fill the device), `memory` (bandwidth below its peak), `layout` (changes of
layout), `unknown` (kernels whose work or device is not known). Ideal and losses sum to the part `compute` of each step, to the nanosecond.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.compute.bound import least_time
from stepscope.analysis.compute.chains import CHAINS, number_chains, sum_chains
from stepscope.analysis.compute.classes import PRODUCTS, Class, classes
from stepscope.analysis.compute.from_memory import reads_from_memory
from stepscope.analysis.compute.plausible import without_impossible
from stepscope.analysis.compute.reordered import reordering_copies
from stepscope.analysis.compute.repeated import repeated_kernels
from stepscope.analysis.compute.time import computing_time
from stepscope.analysis.compute.work import kernel_work
from stepscope.analysis.kernels.device_peaks import Peaks, peaks
from stepscope.lazy import dataclass
from stepscope.registers.policy.compute import FEW_BLOCKS, SMALL_KERNEL_NS
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.schema import Columns
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

REASONS = ("ideal", "matmul", "traffic", "recomputed", "small", "memory", "layout", "unknown")
Reason = pl.Enum(REASONS)
PARTS: Columns = {"device": pl.Int32, "step": pl.Int32, "reason": Reason, "class": Class, "ns": pl.Int64}
KERNELS: Columns = {
    "event": pl.UInt32, "device": pl.Int32, "class": Class, "op": pl.String, "precision": pl.String, "flops": pl.Float64,
    "bytes": pl.Float64, "least_ns": pl.Float64, "ideal_ns": pl.Int64, "time_ns": pl.Int64, "bound": pl.String,
    "reason": Reason, "chain": pl.UInt32,
}  # fmt: skip
REPEATED: Columns = {
    "event": pl.UInt32,
    "how": pl.String,
    "op": pl.String,
    "class": Class,
    "time_ns": pl.Int64,
}
_STEP_OF_OPTIMIZER = r"^Optimizer\.step#|^Adam\.step"


@dataclass(frozen=True)
class ComputeAccount:
    """`parts`: device, step, reason, class, ns; they sum to the part `compute` of each step.

    `kernels`: one row per kernel, with the FLOPs and bytes that it has of its op, the least time they need (`least_ns`, as
    computed; `ideal_ns` is no longer than the kernel took) and what bounds it. `chains`: runs of kernels that could be fused.
    `repeated`: kernels that compute again what was known.
    """

    kernels: pl.DataFrame
    parts: pl.DataFrame
    chains: pl.DataFrame
    repeated: pl.DataFrame
    peaks: dict[int | None, Peaks]


def compute_account(
    trace: Trace, account: Account, kernel_calls: pl.DataFrame, op_calls: pl.DataFrame
) -> ComputeAccount:
    """The account of compute, from the account of the steps and the calls of kernels and ops of the same windows."""
    known = {device.get("id"): found for device in trace.info.devices if (found := peaks(device)) is not None}
    computing = kernel_calls.filter((pl.col("role") != "collective").fill_null(True))
    if computing.is_empty() and not (account.slices["part"] == "compute").any():  # a job on the host
        return _nothing(known)
    time = computing_time(account.slices, computing)
    kernels = _judged(trace, computing, op_calls, known)
    total = time.group_by("event").agg(time_ns=pl.col("ns").sum())
    kernels = kernels.join(total, on="event", how="left", maintain_order="left").with_columns(
        pl.col("time_ns").fill_null(0)
    )
    chains = sum_chains(kernels)
    again = repeated_kernels(trace, kernels, op_calls)
    kernels = _with_reasons(kernels, again)
    return ComputeAccount(
        kernels=kernels.select(pl.col(name).cast(kind) for name, kind in KERNELS.items()),
        parts=_split(time, kernels, chains),
        chains=chains,
        repeated=again.join(kernels.select("event", "op", "class", "time_ns"), on="event", how="left"),
        peaks=known,
    )


def _nothing(known: dict[int | None, Peaks]) -> ComputeAccount:
    return ComputeAccount(
        kernels=pl.DataFrame(schema=KERNELS),
        parts=pl.DataFrame(schema=PARTS),
        chains=pl.DataFrame(schema=CHAINS),
        repeated=pl.DataFrame(schema=REPEATED),
        peaks=known,
    )


def _judged(
    trace: Trace, computing: pl.DataFrame, op_calls: pl.DataFrame, known: dict[int | None, Peaks]
) -> pl.DataFrame:
    """The kernels with class, work, bound and chain."""
    rows = computing.select(
        "event", "device", "track", "step", "name", "start_ns", "dur_ns", "precision", "family", "blocks", "blocks_per_sm", "op"
    )  # fmt: skip
    rows = rows.with_columns(pl.col("op").cast(pl.String), in_optimizer=_in_optimizer(trace, rows["event"]))
    rows = rows.with_columns(classes(rows).alias("class"))
    rows = rows.with_columns(reordering_copies(trace, rows).alias("reorders"))
    layout = pl.when("reorders").then(pl.lit("layout", dtype=Class)).otherwise("class")
    rows = rows.with_columns(layout.alias("class"))
    rows = without_impossible(rows.hstack(kernel_work(trace, rows, op_calls)), known)
    rows = rows.with_columns(reads_from_memory(rows, known).alias("from_memory"))
    rows = rows.hstack(least_time(rows, known))
    return rows.with_columns(number_chains(rows).alias("chain"))


def _in_optimizer(trace: Trace, kernel: pl.Series) -> pl.Series:
    events = trace.events
    steps = (events["role"] == "optimizer").fill_null(False)
    none = pl.repeat(False, len(kernel), dtype=pl.Boolean, eager=True)
    if not steps.any():
        return none
    marked = events.filter(steps)
    marked = marked.filter(pl.col("name").cast(pl.String).str.contains(_STEP_OF_OPTIMIZER))
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(marked["id"], True)
    op = trace.kernels["op"].gather(rows_by_event(trace.kernels["event"], len(events)).gather(kernel))
    return ancestors(events, wanted).gather(op).is_not_null()


def _with_reasons(kernels: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    """What the time beyond the bound is lost to, or the whole of it where it is lost as a whole."""
    is_again = pl.col("event").is_in(again["event"].implode())
    short = (pl.col("dur_ns") < SMALL_KERNEL_NS) | (pl.col("blocks_per_sm") < FEW_BLOCKS).fill_null(False)
    product = pl.col("class").is_in(PRODUCTS)
    helps = pl.col("helps") & pl.col("set_bytes").is_not_null()
    least = pl.when(helps).then(0.0).otherwise("least_ns")
    reason = (
        pl.when(is_again).then(pl.lit("recomputed"))
        .when(pl.col("class") == "layout").then(pl.lit("layout"))
        .when(pl.col("least_ns").is_null()).then(pl.lit("unknown"))
        .when(short).then(pl.lit("small"))
        .when(product | pl.col("helps")).then(pl.lit("matmul"))
        .otherwise(pl.lit("memory"))
    )  # fmt: skip
    rows = kernels.with_columns(least_ns=least).with_columns(reason=reason.cast(Reason))
    known = pl.col("least_ns").fill_null(float("inf")).fill_nan(0.0).clip(lower_bound=0.0)
    limited = pl.min_horizontal(known, pl.col("time_ns").cast(pl.Float64))
    return rows.with_columns(ideal_ns=limited.floor().cast(pl.Int64))


def _split(time: pl.DataFrame, kernels: pl.DataFrame, chains: pl.DataFrame) -> pl.DataFrame:
    """Each kernel's time in each step: ideal, what fusion would remove of it, and the rest by its reason."""
    ratio = chains.select("chain", kept=pl.col("bytes_in_out") / pl.col("bytes_total").clip(lower_bound=1))
    facts = kernels.select("event", "class", "reason", "ideal_ns", "time_ns", "chain").join(
        ratio, on="chain", how="left", maintain_order="left"
    )
    rows = time.join(facts, on="event", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("class").fill_null("other"), pl.col("reason").fill_null("unknown"))
    whole = pl.col("reason").is_in(["recomputed", "layout", "unknown"])
    here = pl.col("ideal_ns") * (pl.col("ns") / pl.col("time_ns").clip(lower_bound=1))
    least = pl.when(whole).then(0.0).otherwise(here).fill_null(0.0).floor().cast(pl.Int64)
    rows = rows.with_columns(least=pl.min_horizontal(least, "ns"))
    kept = (pl.col("least") * pl.col("kept").fill_null(1.0).clip(0.0, 1.0)).floor().cast(pl.Int64)
    rows = rows.with_columns(ideal=kept)
    pieces = [
        (pl.lit("ideal", dtype=Reason), pl.col("ideal")),
        (pl.lit("traffic", dtype=Reason), pl.col("least") - pl.col("ideal")),
        (pl.col("reason"), pl.col("ns") - pl.col("least")),
    ]
    keys = ["device", "step", "reason", "class"]
    found = [
        rows.select("device", "step", "class", reason=reason, ns=ns).filter(pl.col("ns") > 0)
        for reason, ns in pieces
    ]
    summed = pl.concat(found).group_by(keys).agg(pl.col("ns").sum()).sort(keys)
    return summed.select(pl.col(name).cast(kind) for name, kind in PARTS.items())
