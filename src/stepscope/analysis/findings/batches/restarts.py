"""Workers of a DataLoader that are started again for each epoch: how often, and what steps are left without that."""

from __future__ import annotations

from itertools import pairwise
from statistics import median_low

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.spread import OF_BOUNDS
from stepscope.analysis.steps.loader_starts import LoaderStarts
from stepscope.analysis.steps.rhythm import Rhythm
from stepscope.registers.policy.findings import NAMED_STEPS, WORTH_A_FINDING
from stepscope.registers.policy.steps import FIRST_BATCH_STAYS, UNKNOWN_PERIOD_TAIL
from stepscope.trace.frames import take_mean
from stepscope.units import duration, percent

FIX = (
    "Keep the workers: DataLoader(persistent_workers=True). An epoch of more batches (a sampler that goes on, or repeats the data) "
    "also saves the wait for the first batch of each."
)


def find_restarts(case: Case, rule: Rule[Case]) -> Finding | None:
    """What steps in which workers are started again cost, if that is enough to show."""
    recorded = case.recorded
    if recorded.noted_starts is not None and recorded.rhythm is not None:
        return _find_noted(case, rule, recorded.noted_starts, recorded.rhythm)
    starts, slow = recorded.loader_starts, recorded.restarts
    if starts is None or slow.is_empty():
        return None
    extra = (take_mean(slow["ns"]) - case.step_ns) * len(slow)
    share = extra / max(1, int(recorded.lengths["ns"].sum()))
    if share < WORTH_A_FINDING:
        return None
    period = _period(case, slow["step"].to_list())
    left = Interval(
        *(_left(case, starts, *each) for each in zip((0.0, FIRST_BATCH_STAYS, 1.0), period, strict=True))
    )
    is_known = period[0] == period[-1]
    gain = case.gain(left, of_all=True, code=rule.code, spread=None if is_known else OF_BOUNDS)
    return rule.finding(
        _detail(case, starts, slow["step"].to_list(), take_mean(slow["ns"]), period),
        FIX,
        title=rule.title_for(case.device is not None),
        evidence={
            "steps": slow["step"].to_list(),
            "workers": starts.workers,
            "period": period[1] if is_known else None,
        },
        share=round(share, 4),
        saves_ns_per_step=gain.saves_ns,
        speedup=gain.speedup,
        left_ns_per_step=gain.left_ns,
    )


def _find_noted(case: Case, rule: Rule[Case], starts: LoaderStarts, rhythm: Rhythm) -> Finding | None:
    """The same where all of these steps are outside of the window: the capture noted the starts."""
    extra = rhythm.slow_ns - rhythm.usual_ns
    share = extra / rhythm.period / rhythm.mean_ns
    if share < WORTH_A_FINDING:
        return None
    # The mean step is known, and the device has its work to do in each.
    least = case.work_ns(case.plan) if case.replay_fits else rhythm.usual_ns
    lefts = [
        max(least, case.basis.ns - (extra - stays * min(starts.wait_ns, extra)) / rhythm.period)
        for stays in (0.0, FIRST_BATCH_STAYS, 1.0)
    ]
    left = Interval(*(min(1.0, ns / case.basis.ns) for ns in lefts))
    gain = case.gain(left, of_all=True, code=rule.code, spread=OF_BOUNDS)
    return rule.finding(
        f"A DataLoader starts {_processes(starts)} again in one of {rhythm.period} steps, which takes {duration(rhythm.slow_ns)} where the others take {duration(rhythm.usual_ns)}: "
        f"{percent(share)} of the job's time. The first batch after a start is waited for {duration(starts.wait_ns)}. The capture noted this around the window, where no such step is.",
        FIX,
        title=rule.title_for(case.device is not None),
        evidence={"noted_steps": list(starts.steps), "workers": starts.workers, "period": rhythm.period},
        share=round(share, 4),
        saves_ns_per_step=gain.saves_ns,
        speedup=gain.speedup,
        left_ns_per_step=gain.left_ns,
    )


def tell_of_starts(case: Case, found: Finding) -> None:
    """Says that usual steps wait for workers to start, as where an epoch has a batch or two."""
    starts = case.recorded.loader_starts
    usual = set(case.slices["step"].unique()) & set(starts.steps if starts is not None else ())
    if starts is not None and len(usual) > 1:
        found.detail += (
            f" In {len(usual)} of {case.step_count} steps a DataLoader starts {_processes(starts)} again."
        )
        found.fix = FIX


def _processes(starts: LoaderStarts) -> str:
    return f"{starts.workers} worker process{'es' if starts.workers > 1 else ''}"


def _period(case: Case, slow: list[int]) -> tuple[float, float, float]:
    """Steps from one start to the next: as timed without the profiler, or as recorded, else what a single start allows.

    Of all places in a period each is as likely, and of all periods none is known to be more so: that of a period of P is then
    as 1/P², from the shortest that has no second start in the window.
    """
    rhythm = case.recorded.rhythm
    if rhythm is not None:
        return rhythm.period, rhythm.period, rhythm.period
    if len(slow) > 1:
        gap = median_low(later - earlier for earlier, later in pairwise(slow))
        return gap, gap, gap
    steps = case.recorded.lengths["step"].to_list()
    before = steps.index(slow[0])
    shortest = max(before + 1, len(steps) - before)
    tail = UNKNOWN_PERIOD_TAIL
    return shortest / (1 - tail), 2 * shortest, shortest / tail


def _left(case: Case, starts: LoaderStarts, waited: float, period: float) -> float:
    """The mean step without starts as a share of that with them, if so much of the wait for the first batch stays."""
    rhythm = case.recorded.rhythm
    if rhythm is not None:
        usual, extra = rhythm.usual_ns, rhythm.slow_ns - rhythm.usual_ns
    else:
        usual = min(case.step_ns, case.played_ns) if case.replay_fits else case.step_ns
        extra = take_mean(case.recorded.restarts["ns"]) - case.step_ns
    usual = max(usual, case.work_ns(case.plan) if case.replay_fits else 0.0)
    stays = waited * min(starts.wait_ns, extra)
    return min(1.0, (usual + stays / period) / (usual + extra / period))


def _detail(
    case: Case, starts: LoaderStarts, slow: list[int], slow_ns: float, period: tuple[float, float, float]
) -> str:
    listed = ", ".join(map(str, slow[:NAMED_STEPS])) + ("…" if len(slow) > NAMED_STEPS else "")
    said = (
        f"A DataLoader starts {_processes(starts)} again in step{'s' if len(slow) > 1 else ''} "
        f"{listed}, which took {duration(slow_ns)}{' on average' if len(slow) > 1 else ''} where the others take {duration(case.step_ns)} on average."
    )
    rhythm = case.recorded.rhythm
    if rhythm is not None:
        return f"{said} Without the profiler one step in {rhythm.period} takes {duration(rhythm.slow_ns)}, the others {duration(rhythm.usual_ns)}."
    if period[0] != period[-1]:
        return f"{said} How often it does was not recorded: the speed-up is for a start every {period[0]:.0f} to {period[-1]:.0f} steps."
    return f"{said} It does so every {period[1]:.0f} steps."
