"""In which number formats the device computed, and how much of that on tensor cores.

Shares are of compute time: the time of all kernels that are not collectives. `none` is the share of kernels without
floating-point arithmetic (copies between layouts, fills, sorts, whole numbers), `unknown` of those whose name tells nothing.
`eligible_share` is the share of matrix products, which could use the tensor cores.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.names.dtypes import PRECISIONS
from stepscope.lazy import dataclass
from stepscope.trace.frames import conform

TIMES = {"precision": pl.String, "tensor_cores": pl.Boolean, "eligible": pl.Boolean, "ns": pl.Int64}


@dataclass(frozen=True)
class PrecisionShares:
    """Shares of compute time, 0 to 1; `tensor_core_share` is None where no kernel's name tells."""

    shares: dict[str, float]
    tensor_core_share: float | None
    eligible_share: float | None
    unknown_share: float


def precision_times(calls: pl.DataFrame) -> pl.DataFrame:
    """ns by precision, tensor_cores and eligible, from `kernel_calls`; those of several ranks can be concatenated."""
    compute = calls.filter((pl.col("role") != "collective").fill_null(True))
    keys = ["precision", "tensor_cores", "eligible"]
    times = compute.group_by(keys, maintain_order=True).agg(pl.col("dur_ns").sum().alias("ns"))
    return conform(times, TIMES)


UNKNOWN = {"name": pl.String, "op": pl.String, "calls": pl.Int64, "ns": pl.Int64}


def unknown_kernels(calls: pl.DataFrame) -> pl.DataFrame:
    """name, op, calls, ns of the kernels of unknown format, the longest first."""
    compute = calls.filter((pl.col("role") != "collective").fill_null(True), pl.col("precision") == "unknown")
    rows = compute.group_by(pl.col("name", "op").cast(pl.String)).agg(
        calls=pl.len(), ns=pl.col("dur_ns").sum()
    )
    return conform(rows, UNKNOWN).sort(["ns", "name"], descending=[True, False])


def precision_shares(times: pl.DataFrame) -> PrecisionShares:
    """The shares, in the order of the formats' width; formats that do not occur are left out."""
    total = int(times["ns"].sum())
    if not total:
        return PrecisionShares({}, None, None, 0.0)
    found = {name: _ns(times, pl.col("precision") == name) / total for name in PRECISIONS}
    shares = {name: share for name, share in found.items() if share > 0}
    told = times.filter(pl.col("tensor_cores").is_not_null())["ns"].sum() > 0
    judged = times.filter(pl.col("eligible").is_not_null())["ns"].sum() > 0
    return PrecisionShares(
        shares,
        _ns(times, pl.col("tensor_cores")) / total if told else None,
        _ns(times, pl.col("eligible")) / total if judged else None,
        shares.get("unknown", 0.0),
    )


def _ns(times: pl.DataFrame, which: pl.Expr) -> int:
    return int(times.filter(which)["ns"].sum())
