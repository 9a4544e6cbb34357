"""Without a replay of the job: no finding saves more than the rank allows that gains least by it.

Ranks that meet in collectives take equally long. One that has not the finding becomes faster only by waiting less for the others, and
one that hardly waits sets the pace, however fast the others become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.analysis.findings.finding import Finding, Interval, ranked
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE as EXPOSED_COLLECTIVE
from stepscope.analysis.findings.rules.steps.step_outliers import RULE as STEP_OUTLIERS
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import ACCOUNT_SAVES_LEAST, MOST_SAVED, WORTH_A_FINDING
from stepscope.registers.policy.job import SAME_GAIN
from stepscope.reports.model.report import Collectives
from stepscope.reports.sections.findings import OfRank
from stepscope.units import times

_OF_JOB = (EXPOSED_COLLECTIVE.code, STEP_OUTLIERS.code)


@dataclass(frozen=True)
class _Room:
    """What a rank may save by a finding, and by waiting less, as shares of its step."""

    rank: int
    saved: Interval
    waits: float


def bounded_by_slowest(
    findings: Sequence[Finding], ranks: Sequence[OfRank], told: Collectives
) -> list[Finding]:
    """The findings, each with no more than the whole job can gain, in the order of that."""
    waits = _waits(ranks, told)
    if not waits:
        return list(findings)
    for finding in findings:
        if finding.class_ == "time" and finding.saves_ns_per_step > 0 and finding.code not in _OF_JOB:
            rooms = [_room(each, finding.code, waits[each.rank]) for each in ranks if each.rank in waits]
            _limit(finding, rooms)
    return ranked(findings)


def _waits(ranks: Sequence[OfRank], told: Collectives) -> dict[int, float]:
    """The share of an unprofiled step that each rank may spend waiting for others; of ranks whose calls met those of others."""
    step = {each.rank: each.step for each in ranks}
    return {
        row["rank"]: min(1.0, (row["exposed_share"] or 0.0) * _waited(row) / step[row["rank"]])
        for row in told.ranks
        if row.get("matched") and step.get(row["rank"])
    }


def _waited(row: Mapping[str, Any]) -> float:
    """How much of a rank's time in collectives may be waiting: of calls that were not compared, all of it."""
    if row["matched"] < row["calls"] or not row["total_ns"]:
        return 1.0
    return float(min(1.0, row["wait_ns"] / row["total_ns"]))


def _room(rank: OfRank, code: str, waits: float) -> _Room:
    """What a rule leaves out as too little may still be there on a rank without the finding: at best, that goes as well."""
    gain = next((found.speedup for found in rank.found if found.code == code), None)
    if gain is None:
        return _Room(rank.rank, Interval(0.0, 0.0, WORTH_A_FINDING), waits)
    return _Room(rank.rank, Interval(*(1 - 1 / each for each in (gain.low, gain.mid, gain.high))), waits)


def _limit(finding: Finding, rooms: Sequence[_Room]) -> None:
    """Lower the promise to what the rank allows that allows least; worth a sentence where that is clearly less."""
    old = finding.speedup
    least = min(rooms, key=lambda room: room.saved.mid + room.waits)
    limited = Interval(
        min(old.low, *(_speedup(room.saved.low + ACCOUNT_SAVES_LEAST * room.waits) for room in rooms)),
        min(old.mid, *(_speedup(room.saved.mid + room.waits) for room in rooms)),
        min(old.high, *(_speedup(room.saved.high + room.waits) for room in rooms)),
    )
    if limited == old:
        return
    before, saved = finding.saves_ns_per_step, 1 - 1 / old.mid
    left = (1 - 1 / limited.mid) / saved if saved > 0 else 1.0
    finding.evidence = {**finding.evidence, "rank_saves_ns_per_step": before, "rank_speedup": old.mid}
    finding.saves_ns_per_step = round(left * before)
    finding.speedup = limited
    finding.left_ns_per_step = None
    if left < SAME_GAIN:
        finding.detail += (
            f" The whole job gains at most {times(limited.high)}×: rank {least.rank} gains little by it, and waits "
            "little for the others."
        )


def _speedup(saved: float) -> float:
    return round(1 / (1 - min(MOST_SAVED, max(0.0, saved))), 4)
