"""What the profile covers, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from stepscope.analysis.capture_quality import coverage as analysis
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.model.report import Coverage, Gap
from stepscope.reports.sections.section import Section
from stepscope.trace.snapshot import is_snapshot

_FIGURES = ("runtime", "device_time", "memory", "shapes", "stacks", "step_time")


@dataclass(frozen=True)
class RankCoverage:
    """The rank's coverage, and how many ranks its job had."""

    found: analysis.Coverage
    world_size: int | None


def of_rank(context: RankContext) -> RankCoverage:
    """The rank's shares and gaps."""
    found = analysis.coverage(context.trace, context.op_calls, context.account)
    if is_snapshot(context.whole_trace):  # nobody asked it for times
        found = replace(found, gaps=[])
    return RankCoverage(found, context.trace.info.world_size)


def joined(parts: Sequence[RankCoverage], options: Options) -> Mapping[str, Any]:
    """Means over the ranks, of gaps as of shares: together they are all there is. A gap is listed once."""
    ranks = [part.found for part in parts]
    shares = {name: _mean([getattr(rank, name) for rank in ranks]) for name in _FIGURES}
    gaps: dict[tuple[str, str], Gap] = {}
    for row in (row for rank in ranks for row in rank.gaps):
        gap = msgspec.convert(row, Gap)
        known = sum(getattr(rank, gap.what, 0.0) is not None for rank in ranks)
        before = gaps.setdefault((gap.what, gap.reason), msgspec.structs.replace(gap, share=0.0))
        before.share += gap.share / (known or len(ranks))
    for gap in gaps.values():
        gap.share = round(min(1.0, gap.share), 6)
    return {"coverage": Coverage(**shares, gaps=[*gaps.values(), *_missing_ranks(parts)])}


def _missing_ranks(parts: Sequence[RankCoverage]) -> list[Gap]:
    """What other ranks did is not known without their files."""
    world = max((part.world_size or 0 for part in parts), default=0)
    if world <= len(parts):
        return []
    fix = "Record on every rank, and give the folder that has all files."
    reason = f"{len(parts)} of {world} ranks {'is' if len(parts) == 1 else 'are'} in this report."
    return [Gap(what="ranks", share=round(1 - len(parts) / world, 6), reason=reason, fix=fix)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 6) if known else None


SECTION = Section("coverage", of_rank, joined)
