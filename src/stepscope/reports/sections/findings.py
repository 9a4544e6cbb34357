"""What to change: the findings of all ranks, each listed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_memory_rules, apply_rules, replay_together
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.faults import PROMISES, Fault
from stepscope.analysis.findings.finding import Finding, Interval, order, ranked
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE as COMMUNICATION
from stepscope.analysis.findings.rules.steps.step_outliers import RULE as STEP_OUTLIERS
from stepscope.analysis.findings.spare import spared
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.profiles.ranks import spans
from stepscope.reports.sections.section import Section

_ONE_RANK = " This is one of {:,} ranks: waiting for the others cannot be distinguished from transfer. Give the files of all ranks, or their folder."


@dataclass(frozen=True)
class OfRank:
    """The findings of one rank, and what their changes bring together.

    `step`, `saved_of`: the mean step, and the one that savings are a part of, without the profiler, as shares of the recorded mean.
    `faults`: of rules that raised, whose findings are missing. `world`: how many ranks the job has.
    """

    rank: int
    found: list[Finding]
    together: Interval | None
    step: float = 1.0
    saved_of: float = 1.0
    faults: tuple[Fault, ...] = ()
    world: int = 1

    def share_of(self, code: str) -> float:
        """What a saving is of what it would be in the time of the recording."""
        return self.step if code == STEP_OUTLIERS.code else self.saved_of

    def as_recorded(self) -> list[Finding]:
        """The findings with savings in the time of the recording, as ranks are compared in."""
        return [
            replace(each, saves_ns_per_step=round(each.saves_ns_per_step / self.share_of(each.code)))
            for each in self.found
        ]


def of_rank(context: RankContext) -> OfRank:
    """The findings on the rank's critical device."""
    if context.steps.windows.is_empty():
        found = apply_memory_rules(context.case) if context.snapshots else []
        return OfRank(context.rank, found, None, faults=tuple(context.case.faults))
    case = context.sampled.case
    found = apply_rules(case)
    if context.steps.is_whole:
        # Much of a recording is before and after the job: idle time without a cause is no advice.
        found = [each for each in found if each.code != "idle-unexplained"]
    together = spared(case, PROMISES, lambda: replay_together(case, found), lambda: None)
    step, saved_of = spared(case, PROMISES, lambda: _shares(case), lambda: (1.0, 1.0))
    return OfRank(
        context.rank,
        found,
        together,
        step,
        saved_of,
        tuple(dict.fromkeys(case.faults)),
        context.trace.info.world_size or 1,
    )


def _shares(case: Case) -> tuple[float, float]:
    return case.unprofiled_share, case.saved_of_ns / max(1.0, case.basis.ns)


def joined(ranks: Sequence[OfRank], options: Options) -> Mapping[str, Any]:
    """One finding for each code: that of the rank where it costs most, with the others named; of several, in recorded time."""
    by_code: dict[str, list[tuple[int, Finding]]] = {}
    for of_one in ranks:
        for finding in of_one.found if len(ranks) == 1 else of_one.as_recorded():
            by_code.setdefault(finding.code, []).append((of_one.rank, finding))
    shown = [_join(found, len(ranks)) for found in by_code.values()]
    if len(ranks) == 1:
        _name_absent(shown, ranks[0].world)
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


def _name_absent(shown: Sequence[Finding], world: int) -> None:
    """One rank alone shows how long its communication takes, not what of it is the others' lateness."""
    for finding in shown:
        if world > 1 and finding.code == COMMUNICATION.code:
            finding.detail += _ONE_RANK.format(world)


def _lowered(detail: str) -> str:
    """For the middle of a sentence; names keep their capitals."""
    return detail[0].lower() + detail[1:] if detail[:4] in ("The ", "Step") else detail


SECTION = Section("findings", of_rank, joined)
