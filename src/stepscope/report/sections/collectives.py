"""Communication over all ranks: per operation, and how each rank stands among the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.collective_calls import collective_calls
from stepscope.analysis.collectives import Collectives as RankCollectives
from stepscope.analysis.collectives import collective_rows, collectives
from stepscope.report import model
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.rows import capped
from stepscope.report.section import Section


@dataclass(frozen=True)
class RankPart:
    """One rank's calls, and the sums behind its shares."""

    rank: int
    calls: pl.DataFrame
    sums: RankCollectives


def of_rank(context: RankContext) -> RankPart:
    """The rank's communication."""
    calls = collective_calls(context.trace, context.account)
    return RankPart(context.rank, calls, collectives(context.trace, context.account, calls))


def joined(ranks: Sequence[RankPart], options: Options) -> Mapping[str, Any]:
    """Rows over all calls of all ranks; shares of the summed time."""
    if not ranks:
        return {"collectives": model.Collectives()}
    rows = collective_rows(pl.concat([rank.calls for rank in ranks]))
    total = RankCollectives(
        rows=rows,
        exposed_ns=sum(rank.sums.exposed_ns for rank in ranks),
        step_ns=sum(rank.sums.step_ns for rank in ranks),
        collective_kernel_ns=sum(rank.sums.collective_kernel_ns for rank in ranks),
        kernel_ns=sum(rank.sums.kernel_ns for rank in ranks),
    )
    found = model.Collectives(
        rows=msgspec.convert(capped(rows, options.limit).to_dicts(), list[model.CollectiveRow]),
        exposed_share=_rounded(total.exposed_share) if len(rows) else None,
        kernel_share=_rounded(total.kernel_share) if len(rows) else None,
        ranks=[_row(rank) for rank in ranks] if len(ranks) > 1 and len(rows) else [],
    )
    return {"collectives": found}


def _row(part: RankPart) -> dict[str, Any]:
    return {
        "rank": part.rank,
        "calls": len(part.calls),
        "total_ns": int(part.calls["dur_ns"].sum()),
        "exposed_ns": part.sums.exposed_ns,
        "exposed_share": _rounded(part.sums.exposed_share),
        "kernel_share": _rounded(part.sums.kernel_share),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


SECTION = Section("collectives", of_rank, joined)
