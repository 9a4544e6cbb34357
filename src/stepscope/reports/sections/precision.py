"""Number formats of device compute, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.kernels.precision import precision_shares, precision_times, unknown_kernels
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import UNKNOWN_KERNELS
from stepscope.reports.model.report import Precision, UnknownKernel
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class RankPrecision:
    """Compute time by format, and the kernels of unknown format."""

    times: pl.DataFrame
    unknown: pl.DataFrame


def of_rank(context: RankContext) -> RankPrecision:
    """The rank's compute time by precision."""
    return RankPrecision(precision_times(context.kernel_calls), unknown_kernels(context.kernel_calls))


def joined(ranks: Sequence[RankPrecision], options: Options) -> Mapping[str, Any]:
    """Shares of the compute time of all ranks."""
    if not ranks:
        return {"precision": Precision()}
    times = pl.concat([rank.times for rank in ranks])
    total = int(times["ns"].sum())
    rows = pl.concat([rank.unknown for rank in ranks]).group_by("name", "op").agg(pl.col("calls", "ns").sum())
    share = (pl.col("ns") / max(total, 1)).round(6)
    ordered = rows.with_columns(share=share).sort(["ns", "name"], descending=[True, False])
    unknown = msgspec.convert(ordered.head(UNKNOWN_KERNELS).to_dicts(), list[UnknownKernel])
    shares = asdict(precision_shares(times))
    return {"precision": Precision(**shares, unknown_total=len(ordered), unknown=unknown)}


SECTION = Section("precision", of_rank, joined)
