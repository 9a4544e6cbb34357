"""Regions: each has steps, an account and findings of its own; the rest of the report is about one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.model.report import RegionRow
from stepscope.reports.sections import breakdown, findings, steps
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class RankRegion:
    """What the sections found in one region of one rank."""

    name: str
    steps: Any
    breakdown: Any
    findings: Any


def of_rank(context: RankContext) -> list[RankRegion]:
    """All regions of the rank; none where regions were off."""
    return [_of_region(context, name) for name in context.all_steps.regions]


def _of_region(context: RankContext, name: str) -> RankRegion:
    is_shown = name == context.all_steps.region
    # The range of steps was chosen by the numbers of the region that is shown.
    own = (
        context
        if is_shown
        else replace(context, options=replace(context.options, step_name=name, steps=None))
    )
    return RankRegion(name, steps.of_rank(own), breakdown.of_rank(own), findings.of_rank(own))


def joined(ranks: Sequence[list[RankRegion]], options: Options) -> Mapping[str, Any]:
    """The regions by their total time, the longest first; `share` is of the time of all regions."""
    names = list(dict.fromkeys(region.name for rank in ranks for region in rank))
    rows = [
        _row(name, [each for rank in ranks for each in rank if each.name == name], options) for name in names
    ]
    total = sum(row.total_ns for row in rows)
    for row in rows:
        row.share = round(row.total_ns / total, 6) if total else 0.0
    return {"regions": sorted(rows, key=lambda row: (-row.total_ns, row.name))}


def _row(name: str, ranks: list[RankRegion], options: Options) -> RegionRow:
    figures = steps.joined([rank.steps for rank in ranks], options)["steps"]
    parts = breakdown.joined([rank.breakdown for rank in ranks], options)["breakdown"]
    return RegionRow(
        name=name,
        count=figures.count,
        total_ns=sum(row.duration_ns for rank in ranks for row in rank.steps.own()),
        median_ns=figures.median_ns,
        mean_ns=figures.mean_ns,
        p90_ns=figures.p90_ns,
        parts={row.part: row.ns for row in parts},
        findings=findings.joined([rank.findings for rank in ranks], options)["findings"],
    )


SECTION = Section("regions", of_rank, joined)
