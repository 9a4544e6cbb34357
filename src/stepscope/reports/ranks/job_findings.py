"""Findings that only the job as a whole shows: uneven stages, a bubble, slow links, uneven experts, ranks that vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepscope.analysis.findings.finding import Finding, Interval, order, ranked
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE as EXPOSED_COLLECTIVE
from stepscope.profiles.ranks import spans
from stepscope.ranks.job.roles import EXPERT, PIPELINE, TENSOR
from stepscope.ranks.job.what_if import EXPERTS, JITTER, LINK, STAGES
from stepscope.registers.policy.findings import COLLECTIVE_LEFT_MOST
from stepscope.registers.policy.job import BUBBLE_CERTAINTY, HIDING_CERTAINTY, WORTH_A_BUBBLE
from stepscope.reports.model.job import Job, JobCause
from stepscope.reports.ranks.job import speedup
from stepscope.reports.ranks.straggler_finding import without
from stepscope.units import duration, percent


def with_job(findings: Sequence[Finding], job: Job | None, step_ns: int | None) -> list[Finding]:
    """The findings with those of the job, whose time no longer counts as communication of its own."""
    if job is None or not job.is_replayed or not step_ns:
        return _without_waits(findings, step_ns)
    mine = [finding for rule in JOB_RULES for finding in rule.findings(job)]
    rest: list[Finding] = []
    for finding in findings:
        left: Finding | None = finding
        if finding.code == EXPOSED_COLLECTIVE.code:
            for each in mine:
                left = None if left is None else without(left, each, step_ns, _CALLED[each.code])
            if left is not None:
                _promise_transfers(left, job)
        rest += [left] if left is not None else []
    return behind_causes(ranked([*mine, *rest]))


def behind_causes(ranked: list[Finding]) -> list[Finding]:
    """Communication comes behind what makes ranks wait for each other in it: the causes first, then the symptom."""
    causes = {_STRAGGLER, *(rule.code for rule in JOB_RULES)}
    symptoms = [finding for finding in ranked if finding.code == EXPOSED_COLLECTIVE.code]
    others = [finding for finding in ranked if finding.code != EXPOSED_COLLECTIVE.code]
    for symptom in symptoms:
        behind = [place for place, finding in enumerate(others, 1) if finding.code in causes]
        usual = sum(order(finding) <= order(symptom) for finding in others)
        others.insert(max([usual, *behind]), symptom)
    return others


def _without_waits(findings: Sequence[Finding], step_ns: int | None) -> list[Finding]:
    """The same without a replay: of what ranks spend in communication, overlap hides nothing of the waits for each other."""
    symptoms = [finding for finding in findings if finding.code == EXPOSED_COLLECTIVE.code]
    for finding in symptoms:
        transfers = finding.evidence.get("transfers_ns_per_step")
        if step_ns and transfers is not None:
            _promise_at_most(finding, step_ns, transfers)
    return behind_causes(list(findings)) if symptoms else list(findings)


def _promise_transfers(finding: Finding, job: Job) -> None:
    """Most of what ranks spend in communication is waiting for each other: only transfers can be hidden."""
    step_ns, transfers = job.replayed_ns, job.transfers_ns
    if not step_ns or transfers is None:
        return
    if _BLOCKING & job.sizes.keys():
        finding.certainty = min(finding.certainty, HIDING_CERTAINTY)
    _promise_at_most(finding, step_ns, transfers)


def _promise_at_most(finding: Finding, step_ns: int, transfers: int) -> None:
    """Half to all of the transfers, and no more than the rank has other work to hide them behind."""
    least = (1 - COLLECTIVE_LEFT_MOST) * transfers
    saves = round((least + transfers) / 2)
    if saves >= finding.saves_ns_per_step:
        return
    finding.saves_ns_per_step = saves
    before = finding.speedup
    own = (before.low, before.mid, before.high)
    gains = (speedup(step_ns, each) for each in (least, saves, transfers))
    finding.speedup = Interval(*(min(pair) for pair in zip(gains, own, strict=True)))
    finding.left_ns_per_step = None
    finding.detail += f" The whole job gains {finding.speedup.mid:.2f}×: the rest is waiting for other ranks."


def _of_kind(
    kind: str, rule: Callable[[], Rule[Job]], say: Callable[[Job, JobCause], str]
) -> Callable[[Job], Finding | None]:
    def find(job: Job) -> Finding | None:
        cause = next((each for each in job.causes if each.kind == kind), None)
        if cause is None or not job.replayed_ns:
            return None
        return rule().finding(
            detail=say(job, cause),
            evidence=_evidence(cause),
            share=round(cause.saves_ns_per_step / job.replayed_ns, 4),
            saves_ns_per_step=cause.saves_ns_per_step,
            speedup=cause.speedup,
            fix=rule().fix[ANY].format(ranks=_ranks(cause), **_named(cause)),
        )

    return find


def _named(cause: JobCause) -> dict[str, Any]:
    return {"stage": cause.facts.get("stage", ""), "hosts": ", ".join(cause.facts.get("hosts", []))}


def _evidence(cause: JobCause) -> dict[str, Any]:
    evidence = {"ranks": cause.ranks, **cause.facts}
    return evidence if cause.since is None else {**evidence, "since_step": cause.since}


def _ranks(cause: JobCause) -> str:
    return f"rank{'s' if len(cause.ranks) > 1 else ''} {spans(cause.ranks)}"


def _saves(job: Job, cause: JobCause) -> str:
    share = cause.saves_ns_per_step / job.replayed_ns if job.replayed_ns else 0.0
    return f"Replayed without it, the whole job takes {duration(cause.saves_ns_per_step)} less per step ({percent(share)})."


def _say_stages(job: Job, cause: JobCause) -> str:
    times = cause.facts["compute_ns"]
    stage = str(cause.facts["stage"])
    usual = sum(times.values()) / len(times)
    return (
        f"Stage {stage} of {len(times)} ({_ranks(cause)}) computes {duration(times[stage])} per step, the mean stage "
        f"{duration(round(usual))}: the others wait for it. With even stages the job takes "
        f"{duration(cause.saves_ns_per_step)} less per step."
    )


def _say_link(job: Job, cause: JobCause) -> str:
    groups = cause.facts["groups"]
    return (
        f"Transfers of {_ranks(cause)} take {cause.facts['ratio']:.1f} times as long as transfers of the same size between "
        f"other ranks, in {len(groups)} group{'s' if len(groups) > 1 else ''}. {_saves(job, cause)}"
    )


def _say_experts(job: Job, cause: JobCause) -> str:
    return (
        f"Between the exchanges of tokens, {_ranks(cause)} compute{'s' if len(cause.ranks) == 1 else ''} longer than the other ranks of the group, which wait. "
        f"{_saves(job, cause)}"
    )


def _say_jitter(job: Job, cause: JobCause) -> str:
    return (
        "Ranks of the same role take longer now and then, another one each time, and all others wait for it. "
        f"With every rank as fast as usual, the job takes {duration(cause.saves_ns_per_step)} less per step."
    )


def _find_bubble(job: Job) -> Finding | None:
    """Half of it goes with twice as many micro-batches."""
    bubble, step_ns = job.bubble, job.replayed_ns
    if bubble is None or not step_ns or bubble.by_schedule < WORTH_A_BUBBLE:
        return None
    saves = round(bubble.by_schedule * step_ns / 2)
    count_now = bubble.micro_batches or 0
    count = f" with {bubble.micro_batches} micro-batches" if bubble.micro_batches else ""
    uneven = (
        f", and another {percent(bubble.by_imbalance)} by what is uneven, and by transfers"
        if bubble.by_imbalance >= 0.01
        else ""
    )
    found = BUBBLE.finding(
        detail=f"{len(job.roles)} stages{count} leave the mean rank idle for {percent(bubble.by_schedule)} of the step by the schedule{uneven}.",
        evidence={
            "stages": len(job.roles),
            "micro_batches": bubble.micro_batches,
            "bubble_share": bubble.share,
            "by_schedule": bubble.by_schedule,
            "by_imbalance": bubble.by_imbalance,
            "speedups": {
                str(times * count_now): speedup(step_ns, bubble.by_schedule * step_ns * (1 - 1 / times))
                for times in (2, 3, 4, 8)
                if count_now
            },
        },
        share=bubble.by_schedule,
        saves_ns_per_step=saves,
        speedup=Interval(1.0, speedup(step_ns, saves), speedup(step_ns, 2 * saves)),
        fix=BUBBLE.fix[ANY],
    )
    if job.causes:
        found.class_ = "advice"  # what is broken comes first
    return found


STAGES_RULE: Rule[Job] = Rule(
    code="stage-imbalance",
    title="A stage of the pipeline computes longer than the others",
    turn=171,
    page="collectives",
    owns="waits of other stages for the slowest one",
    change="every stage takes the mean compute time of all stages",
    fix={
        ANY: "Move layers from stage {stage} to the others; an embedding or a loss counts as layers of its own."
    },
    find=_of_kind(STAGES, lambda: STAGES_RULE, _say_stages),
)
LINK_RULE: Rule[Job] = Rule(
    code="slow-link",
    title="Links of some ranks are slower than others",
    turn=172,
    page="collectives",
    owns="transfers that take longer than equal transfers of other groups",
    change="they take as long as those of the other groups",
    fix={
        ANY: "Test the links of {ranks} with nccl-tests: their network cards, cables and switch ports, PCIe width and NVLink state (nvidia-smi nvlink -s), and NCCL_IB_HCA."
    },
    find=_of_kind(LINK, lambda: LINK_RULE, _say_link),
)
EXPERTS_RULE: Rule[Job] = Rule(
    code="expert-imbalance",
    title="Experts have unequal numbers of tokens",
    turn=173,
    page="collectives",
    owns="waits for ranks whose experts compute longer",
    change="the experts of a group take the same compute time",
    fix={
        ANY: "Balance the router: an auxiliary loss or bias, a capacity factor, or experts placed by how many tokens they get."
    },
    find=_of_kind(EXPERTS, lambda: EXPERTS_RULE, _say_experts),
)
JITTER_RULE: Rule[Job] = Rule(
    code="rank-jitter",
    title="Ranks vary from step to step, and the slowest one sets the pace",
    turn=174,
    page="collectives",
    owns="waits for ranks that take longer than usual",
    change="every rank takes the usual time of its role",
    fix={
        ANY: "Look for what interrupts ranks now and then: other processes, garbage collection at different times, power limits, uneven batches."
    },
    find=_of_kind(JITTER, lambda: JITTER_RULE, _say_jitter),
)
BUBBLE: Rule[Job] = Rule(
    code="pipeline-bubble",
    title="The schedule of the pipeline leaves ranks idle",
    turn=176,
    page="collectives",
    owns="idle time of stages that have no work yet, or no work left",
    change="twice as many micro-batches; at best, no bubble",
    fix={ANY: "Use more and smaller micro-batches, an interleaved or zero-bubble schedule, or fewer stages."},
    find=_find_bubble,
    certainty=BUBBLE_CERTAINTY,
)
_STRAGGLER = "straggler"
_BLOCKING = {TENSOR, EXPERT, PIPELINE}  # whose calls the next layer needs
_CALLED = {
    "stage-imbalance": "the wait for the slowest stage",
    "slow-link": "what slow links cost",
    "expert-imbalance": "the wait for the busiest experts",
    "rank-jitter": "the wait for ranks that vary",
    "pipeline-bubble": "the bubble of the pipeline",
}
JOB_RULES: Sequence[Rule[Job]] = (STAGES_RULE, LINK_RULE, EXPERTS_RULE, JITTER_RULE, BUBBLE)
