"""Communication over all ranks: per operation, and how each rank stands among the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import polars as pl

from stepscope.across.stragglers import Straggler, by_rank, lateness, straggler
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
    """One rank's calls, the sums behind its shares, and the time and number of its steps."""

    rank: int
    calls: pl.DataFrame
    sums: RankCollectives
    step_ns: int
    steps: int


def of_rank(context: RankContext) -> RankPart:
    """The rank's communication."""
    calls = collective_calls(context.trace, context.account)
    mine = context.steps.windows.filter(pl.col("device").eq_missing(context.critical_device))
    step_ns = int((mine["end_ns"] - mine["start_ns"]).sum())
    sums = collectives(context.trace, context.account, calls)
    return RankPart(context.rank, calls, sums, step_ns, len(mine))


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
    late = lateness({rank.rank: rank.calls for rank in ranks})
    found = model.Collectives(
        rows=msgspec.convert(capped(rows, options.limit).to_dicts(), list[model.CollectiveRow]),
        exposed_share=_rounded(total.exposed_share) if len(rows) else None,
        kernel_share=_rounded(total.kernel_share) if len(rows) else None,
        ranks=_rank_rows(ranks, late) if len(ranks) > 1 and len(rows) else [],
        straggler=_told(_waited_for(ranks, late)),
    )
    return {"collectives": found}


def _waited_for(ranks: Sequence[RankPart], late: pl.DataFrame) -> Straggler | None:
    """By the steps of the rank with the longest: all take part in each other's."""
    longest = max(ranks, key=lambda rank: rank.step_ns)
    return straggler(late, longest.step_ns, longest.steps)


def _told(found: Straggler | None) -> model.Straggler | None:
    if found is None:
        return None
    return model.Straggler(
        **{**asdict(found), "names": list(found.names), "share": round(found.share, 6)}, always=found.always
    )


def _rank_rows(ranks: Sequence[RankPart], late: pl.DataFrame) -> list[dict[str, Any]]:
    waits = {row["rank"]: row for row in by_rank(late).to_dicts()}
    nothing = {"matched": 0, "last": 0, "late_ns": None, "wait_ns": None}
    return [{**_row(rank), **nothing, **waits.get(rank.rank, {})} for rank in ranks]


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
