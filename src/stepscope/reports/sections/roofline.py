"""What compute needs at best and where the rest is lost, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.compute.account import REASONS
from stepscope.analysis.compute.utilisation import Used, flops_used
from stepscope.analysis.context import RankContext
from stepscope.analysis.kernels.device_peaks import Peaks
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped, sum_or_null
from stepscope.reports.model.roofline import ComputePart, PeakRow, Roofline, RooflineRow
from stepscope.reports.sections.section import Section

_WHOLE = ["class"]
_SUMS = ("kernels", "known_ns", "time_ns", "ideal_ns", "flops_ns", "bytes_ns")


@dataclass(frozen=True)
class RankRoofline:
    """Of one rank: sums by class and op, the parts, the peaks of its devices, and the FLOPs of its products."""

    ops: pl.DataFrame
    parts: pl.DataFrame
    peaks: list[Peaks]
    used: Used


def of_rank(context: RankContext) -> RankRoofline:
    """The rank's account of compute, summed."""
    found = context.compute
    parts = found.parts.group_by(pl.col("reason", "class").cast(pl.String)).agg(pl.col("ns").sum())
    window_ns = int(context.parts["ns"].sum())
    peaks = list({each.name: each for each in found.peaks.values()}.values())
    return RankRoofline(_by_op(found.kernels), parts, peaks, flops_used(found, window_ns))


def _by_op(kernels: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("least_ns").is_not_null()
    time = pl.col("time_ns")
    return (
        kernels.filter(time > 0)
        .with_columns(pl.col("class").cast(pl.String))
        .group_by("class", "op", "bound")
        .agg(
            sum_or_null("flops"),
            sum_or_null("bytes"),
            kernels=pl.len().cast(pl.Int64),
            time_ns=time.sum(),
            known_ns=time.filter(known).sum(),
            ideal_ns=pl.col("ideal_ns").filter(known).sum(),
            flops_ns=time.filter(pl.col("flops").is_not_null()).sum(),
            bytes_ns=time.filter(pl.col("bytes").is_not_null()).sum(),
        )
    )


def joined(ranks: Sequence[RankRoofline], options: Options) -> Mapping[str, Any]:
    """Sums over ranks: each class, then its ops, the longest first."""
    parts = pl.concat([rank.parts for rank in ranks]) if ranks else pl.DataFrame()
    if parts.is_empty():
        return {"roofline": Roofline()}
    ops = pl.concat([rank.ops for rank in ranks])
    total = int(parts["ns"].sum())
    by_op = _rows(ops, ["class", "op"], total)
    rows = pl.concat([_rows(ops, _WHOLE, total), capped(by_op, options.limit)], how="diagonal")
    mfu, hfu = _utilisation([rank.used for rank in ranks])
    unknown = int(parts.filter(pl.col("reason") == "unknown")["ns"].sum())
    peaks = {each.name: each for rank in ranks for each in rank.peaks}
    found = Roofline(
        peaks=[_peak(each) for each in peaks.values()],
        rows=msgspec.convert(rows.to_dicts(), list[RooflineRow]),
        total=len(by_op) + ops["class"].n_unique(),
        parts=_parts(parts, total),
        known_share=round(1 - unknown / total, 6),
        mfu=mfu,
        hfu=hfu,
    )
    return {"roofline": found}


def _rows(ops: pl.DataFrame, keys: list[str], total: int) -> pl.DataFrame:
    """Sums by these keys; what bounds most of the time is the bound."""
    bound = pl.col("bound").get(pl.when(pl.col("bound").is_not_null()).then("time_ns").arg_max())
    summed = ops.group_by(keys).agg(
        *(pl.col(name).sum() for name in _SUMS), sum_or_null("flops"), sum_or_null("bytes"), bound
    )
    known = pl.col("known_ns") > 0
    return summed.select(
        *keys,
        "kernels",
        "flops",
        "bytes",
        "time_ns",
        pl.when(known).then("bound").alias("bound"),
        pl.when(known).then("ideal_ns").alias("ideal_ns"),
        share=(pl.col("time_ns") / total).round(6),
        share_of_bound=pl.when(known).then((pl.col("ideal_ns") / pl.col("known_ns")).round(6)),
        flops_per_s=pl.when(pl.col("flops_ns") > 0).then(pl.col("flops") * 1e9 / pl.col("flops_ns")),
        bytes_per_s=pl.when(pl.col("bytes_ns") > 0).then(pl.col("bytes") * 1e9 / pl.col("bytes_ns")),
    ).sort(["time_ns", *keys], descending=[True, *[False] * len(keys)], nulls_last=True)


def _parts(parts: pl.DataFrame, total: int) -> list[ComputePart]:
    """Ideal first, then the losses, the largest first."""
    found = []
    for reason in REASONS:
        mine = parts.filter(pl.col("reason") == reason).group_by("class").agg(pl.col("ns").sum())
        ns = int(mine["ns"].sum())
        if ns:
            by_class = dict(mine.sort(["ns", "class"], descending=[True, False]).iter_rows())
            found.append(ComputePart(reason=reason, ns=ns, share=round(ns / total, 6), ns_by_class=by_class))
    return sorted(found, key=lambda part: (part.reason != "ideal", -part.ns))


def _utilisation(used: Sequence[Used]) -> tuple[float | None, float | None]:
    """Weighted by the time of the steps; nothing is claimed beyond 100 %, or where a rank is not known."""
    if not all(each.is_known for each in used):
        return None, None
    window = sum(each.window_ns for each in used)
    hfu = sum(each.at_peak_ns for each in used) / window
    mfu = hfu - sum(each.again_ns for each in used) / window
    return (round(mfu, 6), round(hfu, 6)) if hfu <= 1 else (None, None)


def _peak(found: Peaks) -> PeakRow:
    return PeakRow(
        device=found.name,
        source=found.source,
        flops_per_s=found.flops,
        bytes_per_s=found.bytes_per_s,
        l2_bytes=found.l2_bytes or None,
        l2_bytes_per_s=found.l2_bytes_per_s,
        pcie_bytes_per_s=found.pcie_bytes_per_s,
        link=found.link or None,
        link_bytes_per_s=found.link_bytes_per_s,
    )


SECTION = Section("roofline", of_rank, joined)
