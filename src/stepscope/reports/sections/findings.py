"""What to change: the findings of all ranks, each listed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_memory_rules, apply_rules, replay_together
from stepscope.analysis.findings.finding import Finding, Interval, order, ranked
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.profiles.ranks import spans
from stepscope.reports.sections.section import Section


@dataclass(frozen=True)
class OfRank:
    """The findings of one rank, and what their changes bring together."""

    rank: int
    found: list[Finding]
    together: Interval | None


def of_rank(context: RankContext) -> OfRank:
    """The findings on the rank's critical device."""
    if context.steps.windows.is_empty():
        return OfRank(context.rank, apply_memory_rules(context.case) if context.snapshots else [], None)
    case = context.sampled.case
    found = apply_rules(case)
    if context.steps.is_whole:
        # Much of a recording is before and after the job: idle time without a cause is no advice.
        found = [each for each in found if each.code != "idle-unexplained"]
    return OfRank(context.rank, found, replay_together(case, found))


def joined(ranks: Sequence[OfRank], options: Options) -> Mapping[str, Any]:
    """One finding for each code: that of the rank where it costs most, with the others named."""
    by_code: dict[str, list[tuple[int, Finding]]] = {}
    for of_one in ranks:
        for finding in of_one.found:
            by_code.setdefault(finding.code, []).append((of_one.rank, finding))
    shown = [_join(found, len(ranks)) for found in by_code.values()]
    # What one rank would gain by its own findings is not what a job gains by those of several.
    return {"findings": ranked(shown), "together": ranks[0].together if len(ranks) == 1 else None}


def _join(found: list[tuple[int, Finding]], ranks: int) -> Finding:
    rank, worst = min(found, key=lambda pair: order(pair[1]))
    if ranks > 1:
        others = sorted(number for number, _ in found if number != rank)
        also = f" Also on rank{'s' if len(others) > 1 else ''} {spans(others)}." if others else ""
        worst.detail = f"On rank {rank}: {_lowered(worst.detail)}{also}"
        worst.evidence = {**worst.evidence, "rank": rank, "ranks": sorted([rank, *others])}
    return worst


def _lowered(detail: str) -> str:
    """For the middle of a sentence; names keep their capitals."""
    return detail[0].lower() + detail[1:] if detail[:4] in ("The ", "Step") else detail


SECTION = Section("findings", of_rank, joined)
