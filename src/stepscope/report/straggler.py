"""The finding that no rank can make alone: one of them is waited for."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.report.model import Finding, Straggler
from stepscope.units import duration

CODE = "straggler"
_WAITING = "exposed-collective"


def with_straggler(
    findings: Sequence[Finding], found: Straggler | None, step_ns: int | None
) -> list[Finding]:
    """The findings with that of the straggler, whose time no longer counts as the collective's own."""
    if found is None or not step_ns:
        return list(findings)
    mine = _finding(found, step_ns)
    rest = [_without(finding, mine, step_ns) if finding.code == _WAITING else finding for finding in findings]
    told = [finding for finding in rest if finding is not None]
    before = [
        finding
        for finding in told
        if finding.class_ != "time" or finding.saves_ns_per_step > mine.saves_ns_per_step
    ]
    return [*before, mine, *(finding for finding in told if finding not in before)]


def _finding(found: Straggler, step_ns: int) -> Finding:
    late = found.late_ns_per_step
    often = "in nearly every step" if found.always else f"in {found.steps_late} of {found.steps} steps"
    speedup = round(step_ns / max(1, step_ns - late), 4)
    return Finding(
        code=CODE,
        class_="time",
        title=f"The other ranks wait for rank {found.rank}",
        detail=(
            f"Rank {found.rank} comes last to {found.last} of {found.matched} collectives and holds the others up for "
            f"{duration(late)} per step ({found.share:.0%}), most of all ranks {often}."
        ),
        evidence={
            "rank": found.rank,
            "late_ns_per_step": late,
            "last": found.last,
            "matched": found.matched,
            "steps_late": found.steps_late,
            "steps": found.steps,
            "always": found.always,
            "names": found.names,
        },
        share=found.share,
        saves_ns_per_step=late,
        speedup=speedup,
        speedup_max=speedup,
        fix=_fix(found),
    )


def _fix(found: Straggler) -> str:
    if found.always:
        return (
            f"Give all ranks the same amount of work: compare batch sizes, sequence lengths and the input pipeline of rank "
            f"{found.rank} with the others, then its GPU's clocks and temperature."
        )
    return (
        "The work varies from step to step: bucket batches by length, spread expensive samples over ranks, and keep "
        f"checkpoints, logging and garbage collection off rank {found.rank}'s steps."
    )


def _without(finding: Finding, mine: Finding, step_ns: int) -> Finding | None:
    """What is left of the communication itself; nothing, if all of it was waiting."""
    saves = finding.saves_ns_per_step - mine.saves_ns_per_step
    share = finding.share - mine.share
    if share <= 0:
        return None
    finding.share = share
    finding.saves_ns_per_step = max(0, saves)
    finding.speedup = min(finding.speedup, round(step_ns / max(1, step_ns - max(0, saves)), 4))
    finding.speedup_max = min(finding.speedup_max, round(1 / max(1e-6, 1 - share), 4))
    finding.detail += f" Without the wait for rank {mine.evidence['rank']}, which is a finding of its own, {share:.0%} are left."
    return finding
