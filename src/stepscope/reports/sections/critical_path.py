"""The critical path of the steps, of a report on one rank: what ranks wait for each other is not part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.account.places import BEFORE
from stepscope.analysis.context import RankContext
from stepscope.analysis.critical_path import KINDS
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped, without_address
from stepscope.reports.model.critical_path import CriticalPath, PathRow
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class RankPath:
    """The path by kind, name and whether that came next, and where it is from."""

    rows: pl.DataFrame
    source: str


def of_rank(context: RankContext) -> RankPath | None:
    """None where there are other ranks, or no steps."""
    if not context.alone or context.windows.windows.is_empty():
        return None
    found = context.critical_path
    rows = found.by_name().with_columns(without_address("name")).sort("ns", "event", descending=[True, False])
    summed = rows.group_by("kind", "name", "before", maintain_order=True).agg(
        pl.col("ns", "count").sum(), pl.col("event", "step").first()
    )
    return RankPath(summed.sort("ns", "name", "kind", descending=[True, False, False]), found.source)


def joined(ranks: Sequence[RankPath | None], options: Options) -> Mapping[str, Any]:
    """The path of the only rank."""
    found = ranks[0] if len(ranks) == 1 else None
    if found is None:
        return {"critical_path": CriticalPath()}
    total = int(found.rows["ns"].sum())
    rows = found.rows.with_columns(
        pl.col("kind").cast(pl.String),
        place=pl.when("before").then(pl.lit(BEFORE)),
        share=(pl.col("ns") / max(total, 1)).round(6),
    ).drop("before")
    kinds = dict(rows.group_by("kind").agg(pl.col("share").sum().round(6)).iter_rows())
    path = CriticalPath(
        source=found.source,
        total_ns=total,
        kinds={kind: kinds[kind] for kind in KINDS if kind in kinds},
        rows=msgspec.convert(capped(rows, options.limit).to_dicts(), list[PathRow]),
        rows_total=len(rows),
    )
    return {"critical_path": path}


SECTION = Section("critical_path", of_rank, joined)
