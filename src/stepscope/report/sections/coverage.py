"""What the profile covers, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepscope.analysis import coverage as analysis
from stepscope.report.model import Coverage, Gap
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.section import Section

_FIGURES = ("runtime", "device_time", "memory", "shapes", "stacks", "step_time")


def of_rank(context: RankContext) -> analysis.Coverage:
    """The rank's shares and gaps."""
    return analysis.coverage(context.trace, context.op_calls, context.account)


def joined(ranks: Sequence[analysis.Coverage], options: Options) -> Mapping[str, Any]:
    """Means over the ranks; a gap is told once, with the largest share that any rank misses."""
    shares = {name: _mean([getattr(rank, name) for rank in ranks]) for name in _FIGURES}
    gaps: dict[tuple[str, str], Gap] = {}
    for row in (row for rank in ranks for row in rank.gaps):
        gap = msgspec.convert(row, Gap)
        before = gaps.get((gap.what, gap.reason))
        gaps[gap.what, gap.reason] = gap if before is None or gap.share > before.share else before
    return {"coverage": Coverage(**shares, gaps=list(gaps.values()))}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 6) if known else None


SECTION = Section("coverage", of_rank, joined)
