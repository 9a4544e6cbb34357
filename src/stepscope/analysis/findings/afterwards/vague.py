"""Promises that say nothing, and why nothing is promised where another fix comes first."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import left_by_replay
from stepscope.registers.policy.findings import WIDEST_PROMISE, WORTH_A_FINDING
from stepscope.units import speedup, times


def withdraw_vague(case: Case) -> None:
    """Leave those as advice of which the profile does not show whether they bring nothing or most of the step.

    Where nothing is promised but a limit is known, as of a function that takes most of the step, the limit stays.
    """
    for found in case.earlier:
        promised = found.speedup
        if (
            found.saves_ns_per_step == 0
            or promised.low >= 1 + WORTH_A_FINDING
            or promised.high <= WIDEST_PROMISE * promised.low
        ):
            continue
        withdraw(found)
        case.changes.pop(found.code, None)
        bounds = speedup(promised.low, promised.high)
        found.detail += f" How much of it a fix removes, the profile does not show: the speed-up is {bounds}."


def say_what_comes_first(case: Case) -> None:
    """Of findings that bring nothing alone, say after which fix they bring something."""
    for found in _without_gain(case):
        for first in case.earlier:
            if first.saves_ns_per_step == 0 or first.code not in case.changes:
                continue
            both = case.changes[first.code].combined(case.changes[found.code])
            after = case.gain(left_by_replay(case, both), code=found.code).speedup.mid
            if after > (1 + WORTH_A_FINDING) * first.speedup.mid:
                found.detail += (
                    f" Alone it saves nothing, since the step would wait all the same: fix {first.code} first. "
                    f"Both together bring about {times(after)}× instead of {times(first.speedup.mid)}×."
                )
                found.evidence = {**found.evidence, "first": first.code, "together": round(after, 2)}
                break


def _without_gain(case: Case) -> Iterator[Finding]:
    for found in case.earlier:
        nothing = found.speedup.high < 1 + WORTH_A_FINDING and found.saves_ns_per_step == 0
        if found.class_ == "time" and found.code in case.changes and nothing:
            yield found
