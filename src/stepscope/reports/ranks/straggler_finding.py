"""The finding that no rank can make alone: one of them is waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analysis.findings.finding import Finding, Interval, ranked
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE as EXPOSED_COLLECTIVE
from stepscope.analysis.findings.rules.steps.step_outliers import RULE as STEP_OUTLIERS
from stepscope.analysis.parts import spoken
from stepscope.lazy import dataclass
from stepscope.profiles.ranks import spans
from stepscope.ranks.calls.matching import SYMMETRIC
from stepscope.ranks.stragglers.causes import COMPUTE
from stepscope.registers.policy.findings import ACCOUNT_SAVES_LEAST, MOST_SAVED
from stepscope.registers.policy.ranks import ALWAYS_LATE
from stepscope.reports.model.report import Collectives, Straggler
from stepscope.units import duration, percent


@dataclass(frozen=True)
class LateRank:
    """The rank that the others wait for, if there is one, and the mean step of the run."""

    straggler: Straggler | None
    step_ns: int | None


def with_waits(findings: Sequence[Finding], told: Collectives, step_ns: int | None) -> None:
    """Say in `exposed-collective` how much of the ranks' time in matched collectives is spent waiting for ranks that arrive later."""
    matched = [row for row in told.rows if row.wait_ns is not None and row.name in SYMMETRIC]
    spent = sum(row.total_ns for row in matched)
    for finding in findings:
        if finding.code == EXPOSED_COLLECTIVE.code and spent:
            share = min(1.0, sum(row.wait_ns or 0 for row in matched) / spent)
            transfers = round((1 - share) * finding.share * (step_ns or 0))
            waits = {"wait_share": round(share, 4), "transfers_ns_per_step": transfers}
            finding.evidence = {**finding.evidence, **waits}
            finding.detail += f" {percent(share)} of all ranks' time in collectives is spent waiting for ranks that arrive later."


def with_straggler(
    findings: Sequence[Finding], found: Straggler | None, step_ns: int | None
) -> list[Finding]:
    """The findings with that of the straggler, whose time no longer counts as the collective's own."""
    mine = find(LateRank(found, step_ns))
    if mine is None or found is None or not step_ns:
        return list(findings)
    explained = [finding for finding in findings if _is_late_steps(finding, found)]
    for finding in findings:
        same = finding.saves_ns_per_step if finding in explained else _same_cause(finding, found)
        _say_the_same(finding, mine, same)
    rest = [
        without(finding, mine, step_ns, f"the wait for rank {mine.evidence['rank']}")
        if finding.code == EXPOSED_COLLECTIVE.code
        else finding
        for finding in findings
    ]
    return before_slow_steps(ranked((mine, *(finding for finding in rest if finding is not None))), found)


def before_slow_steps(findings: list[Finding], found: Straggler | None) -> list[Finding]:
    """Why steps are slow comes before that they are."""
    place = next((at for at, finding in enumerate(findings) if finding.code == RULE.code), None)
    if place is None or found is None:
        return findings
    before, mine, after = findings[:place], findings[place], findings[place + 1 :]
    swapped = [finding for finding in before if _is_late_steps(finding, found)]
    return [*(finding for finding in before if finding not in swapped), mine, *swapped, *after]


def _same_cause(finding: Finding, found: Straggler) -> int:
    """Of the time of what makes the late rank late, that of this finding; 0 where it is about something else."""
    cause = "compute" if found.cause in _COMPUTING else found.cause or ""
    mine = finding.evidence.get("rank") in found.ranks and finding.code in _OF_CAUSE.get(cause, ())
    return found.parts.get(cause, 0) if mine else 0


def _is_late_steps(finding: Finding, found: Straggler) -> bool:
    """Whether it is about slow steps, and most are those in which the rank was late, or did what made it late."""
    if finding.code != STEP_OUTLIERS.code:
        return False
    slow = set(finding.evidence.get("steps", ()))
    late = {*found.late_in, *(step - 1 for step in found.late_in)}
    return 2 * len(slow & late) >= max(1, len(slow))


def _say_the_same(finding: Finding, mine: Finding, same_ns: int) -> None:
    """What makes the late rank late is a finding of its own, too: its time is saved once, not twice."""
    same = min(finding.saves_ns_per_step, mine.saves_ns_per_step, same_ns)
    if same <= 0:
        return
    finding.evidence = {**finding.evidence, "same_time_as": RULE.code, "same_ns_per_step": same}
    finding.detail += (
        f" {percent(same / finding.saves_ns_per_step)} of it is the same time that the others wait for rank {mine.evidence['rank']}, a finding "
        "of its own: it can be saved only once."
    )


def find(ranks: LateRank) -> Finding | None:
    """The finding about the late rank."""
    found, step_ns = ranks.straggler, ranks.step_ns
    if found is None or not step_ns:
        return None
    # The share is of the steps that were compared, whose mean may be another than that of all recorded ones.
    late = min(found.late_ns_per_step, int(min(found.share, MOST_SAVED) * step_ns))
    if late <= 0:
        return None
    speedup = Interval(*(_speedup(step_ns, share * late) for share in (ACCOUNT_SAVES_LEAST, 1.0, 1.0)))
    return RULE.finding(
        title=_title(found),
        detail=" ".join((_late(found), *_why(found))),
        evidence={
            "rank": found.rank,
            "ranks": found.ranks,
            "kind": found.kind,
            "cause": found.cause,
            "late_ns_per_step": late,
            "last": found.last,
            "matched": found.matched,
            "steps_late": found.steps_late,
            "steps": found.steps,
            "always": found.always,
            "names": found.names,
            "parts": found.parts,
        }
        | {name: getattr(found, name) for name in _RATIOS if getattr(found, name) is not None}
        | ({} if found.since is None else {"since_step": found.since}),
        share=round(late / step_ns, 4),
        saves_ns_per_step=late,
        speedup=speedup,
        fix=_fix(found),
    )


def _speedup(step_ns: float, saved_ns: float) -> float:
    return round(step_ns / (step_ns - min(saved_ns, MOST_SAVED * step_ns)), 4)


def _less(speedup: float, share: float) -> float:
    """The speed-up of that share of its saving."""
    return round(1 / (1 - share * (1 - 1 / speedup)), 4)


def _title(found: Straggler) -> str:
    if len(found.ranks) > 1 and found.kind == "data-dependent":
        return "Ranks wait for each other: their batches are uneven"
    if len(found.ranks) > 1:
        return f"The other ranks wait for ranks {spans(found.ranks)}"
    return f"The other ranks wait for rank {found.rank}"


def _late(found: Straggler) -> str:
    often = {
        "always": "in nearly every step"
        if found.steps_late >= ALWAYS_LATE * found.steps
        else "in every step with more to compute",
        "unclear": f"in {found.steps_late} of {found.steps} steps, too few to say whether it always is",
    }.get(found.kind, _now_and_then(found))
    worst = (
        ""
        if len(found.ranks) < 2
        else f"ranks {spans(found.ranks)} are late, rank {found.rank} most of all: "
    )
    text = (
        f"{worst}rank {found.rank} arrives last at {found.last} of {found.matched} collectives, {often}. The others wait "
        f"{duration(found.late_ns_per_step)} per step ({percent(found.share)})."
    )
    return text[0].upper() + text[1:]


def _now_and_then(found: Straggler) -> str:
    """The rank that comes last nearly always, and is seldom late by much, is not late now and then."""
    steps = f"{found.steps_late} of {found.steps} steps"
    if found.since is not None:
        return f"from step {found.since} on, in {steps}"
    if found.last < ALWAYS_LATE * found.matched or found.steps_late >= ALWAYS_LATE * found.steps:
        return f"now and then, in {steps}"
    return (
        f"mostly by little, in {steps} by more than steps vary anyway"
        if found.steps_late
        else "by little each time"
    )


def _why(found: Straggler) -> Iterator[str]:
    """What takes the rank longer than the others, where that is known."""
    longest = next((part for part, ns in found.parts.items() if ns > 0), None)
    computing = [part for part in COMPUTE if found.cause in _CAUSES and found.parts.get(part, 0) > 0]
    part = computing[0] if computing else longest
    if part is not None:
        what = _TAKES.get(part, f"{spoken(part)} takes")
        when = (
            "In the steps before those, after the last collective,"
            if found.in_step_before
            else "In those steps"
        )
        took = f"{when} its {what} {duration(found.parts[part])} longer than on the other ranks"
        yield f"{took}{_CAUSES.get(found.cause or '', '') if computing else ''}."
    yield from _more_work(found)


def _more_work(found: Straggler) -> Iterator[str]:
    """Larger launches and more of them are distinguished; where neither is known, or others run, all blocks together."""
    larger, more = found.blocks_per_launch_ratio or 0, found.launches_ratio or 0
    if "host_compute" in found.parts:
        if more >= _MORE_WORK:
            yield f"It calls {more:.1f} times as many ops as they do."
        elif (found.work_ratio or 0) >= _MORE_WORK:
            yield f"Its ops have {found.work_ratio:.1f} times as much to compute as those of the other ranks."
        return
    if larger >= _MORE_WORK:
        yield f"Its kernels have {larger:.1f} times the blocks of the same ones on the other ranks."
    if more >= _MORE_WORK:
        yield f"It launches {more:.1f} times as many kernels as they do."
    if max(larger, more) < _MORE_WORK <= (found.work_ratio or 0):
        yield f"In total, its kernels have {found.work_ratio:.1f} times the blocks of those on the other ranks."


_TAKES = {
    "unexplained": "time outside of all recorded events is",
    "copy": "copies take",
    "device_gap": "device gaps take",
    "io": "work on files takes",
}
_RATIOS = ("work_ratio", "blocks_per_launch_ratio", "launches_ratio")
_MORE_WORK = 1.1
_CAUSES = {
    "work": ", because it has more to compute",
    "clock": ", because its GPU runs at a lower clock",
    "compute": ", though it has no more to compute",
}
_COMPUTING = ("work", "clock", "compute")
# What owns the time of a part of the account.
_OF_CAUSE = {
    "input": ("input-bound",),
    "python": ("host-python",),
    "io": ("file-io", "host-python"),
    "dispatch": ("launch-bound", "eager-execution", "optimizer-loop", "small-batch", "pipeline-restart"),
    "sync": ("device-sync",),
    "compile": ("recompilation", "retracing", "pipeline-restart"),
    "copy": ("exposed-copy", "round-trip-copy", "cpu-fallback"),
    "compute": ("fp32-matmul", "unfused-attention", "layout-conversion", "low-occupancy", "small-batch"),
    "unexplained": ("idle-unexplained",),
}
_FIXES = {
    "input": "Look at the input pipeline of rank {rank}: its disk, its share of files, its loader's workers and their cores.",
    "python": "Find what only rank {rank} does in Python: logging, metrics, checkpoints, garbage collection. Move it off the steps.",
    "io": "Write checkpoints and logs of rank {rank} from a thread, or not inside steps.",
    "dispatch": "Look at the host of rank {rank}: other processes on its cores, CPU frequency, affinity, garbage collection.",
    "allocator": "Find why only rank {rank} allocates memory inside steps: larger or changing shapes, empty_cache, or less free memory.",
    "work": "Give all ranks the same amount of work: compare batch sizes and sequence lengths of rank {rank} with the others.",
    "clock": "Look at the GPU of rank {rank}: its temperature, power limit and clocks (nvidia-smi -q -d PERFORMANCE).",
    "compute": "The same kernels take longer on rank {rank}: look at its GPU's clocks, temperature and power limit, and for other processes on it.",
    "host_compute": "The same ops take longer on rank {rank}: look for other processes on its cores, its CPU's frequency, affinity and number of threads.",
    "unexplained": "Rank {rank} does something that was not recorded, mostly its program's own code between operations: name it with stepscope.annotate, "
    "and look for logging, metrics, checkpoints and data that only it works on.",
    "compile": "Rank {rank} compiles while the others wait: share the compilation cache, and pad inputs to few shapes.",
}


def _fix(found: Straggler) -> str:
    if found.kind == "sometimes" and found.cause == "work":
        return f"Find what only rank {found.rank} computes in those steps, such as an evaluation: share it between ranks, or do it less often."
    calls = found.launches_ratio or 0
    if (
        len(found.ranks) == 1
        and found.cause == "work"
        and "host_compute" in found.parts
        and calls >= _MORE_WORK
    ):
        return f"Find what only rank {found.rank} computes: more passes, an evaluation, longer loops. It makes more calls than the others."
    if len(found.ranks) == 1 and (found.work_ratio or 0) >= _MORE_WORK:
        return _FIXES["work"].format(rank=found.rank)
    if found.kind == "data-dependent":
        return "The work varies from step to step: bucket batches by length, pack sequences, and spread expensive samples over ranks."
    return _FIXES.get(found.cause or "", RULE.fix[ANY]).format(rank=found.rank)


def without(finding: Finding, mine: Finding, step_ns: int, called: str) -> Finding | None:
    """What is left of the communication without a finding of its own, as it is called; nothing, if all of it was waiting."""
    share = finding.share - mine.share
    if share <= 0:
        return None
    # The shares are of one rank's step and of the mean of all: what is left saves no more than it takes by either.
    saves = max(0, min(finding.saves_ns_per_step - mine.saves_ns_per_step, int(share * step_ns)))
    left = 1.0 if not finding.saves_ns_per_step else saves / finding.saves_ns_per_step
    finding.share = round(share, 4)
    finding.saves_ns_per_step = saves
    before = finding.speedup
    finding.speedup = Interval(*(_less(gain, left) for gain in (before.low, before.mid, before.high)))
    finding.left_ns_per_step = None
    finding.detail += f" Without {called}, which is a finding of its own, {percent(share)} is left."
    return finding


RULE: Rule[LateRank] = Rule(
    code="straggler",
    title="The other ranks wait for one rank",
    turn=175,
    page="collectives",
    owns="waits of other ranks for a late one",
    change="see [collectives](collectives.md)",
    fix={ANY: "Compare the machine of rank {rank} and what runs on it with the others."},
    find=find,
)
