"""Findings of which another one takes a part: that one comes first, and of theirs only what is then left counts.

Work of the host that only a wait keeps from running beside the device: once the host no longer waits, it prepares the next batch
while the device computes, and not to wait is the smaller change. And the findings that nearly every cause looks like, slow launches and
kernels that could be fused: what another finding names as the reason for launches or kernels need not be launched or fused.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import left_by_replay
from stepscope.registers.policy.findings import MAJORITY, SURE_GAIN

_WAITS = "device-sync"
_WORKS = ("host-python", "input-bound")
_CATCH_ALL = ("launch-bound", "unfused-elementwise")
_DETAIL = " Most of it would run while the device computes, if the host did not wait for the device: see device-sync."


def put_behind_waits(case: Case) -> None:
    """Lower how much is expected of such findings, and say why."""
    for finding, still_saved in _hidden(case):
        finding.certainty *= still_saved
        if still_saved < MAJORITY:
            finding.detail += _DETAIL


def put_behind_causes(case: Case) -> None:
    """Lower how much is expected of findings that nearly every cause looks like, by what the causes that were found take of it."""
    found = _replayed(case)
    causes = [
        each
        for code, each in found.items()
        if code not in _CATCH_ALL and code not in case.of_slow_steps and each.speedup.mid >= SURE_GAIN
    ]
    for code in _CATCH_ALL:
        if code in found:
            left = [_still_saved(case, found[code], cause) for cause in causes]
            found[code].certainty *= min(left, default=1.0)


def _replayed(case: Case) -> dict[str, Finding]:
    """The findings that promise something of a change that was replayed, by code."""
    return {each.code: each for each in case.earlier if each.class_ == "time" and each.code in case.changes}


def _hidden(case: Case) -> Iterator[tuple[Finding, float]]:
    """Findings about such work, and the share of their saving that is left when the host does not wait."""
    found = _replayed(case)
    waits = found.get(_WAITS)
    if waits is None:
        return
    for code in _WORKS:
        if code not in found:
            continue
        if _saved(found[code].speedup) > 0:
            yield found[code], _still_saved(case, found[code], waits)


def _still_saved(case: Case, mine: Finding, first: Finding) -> float:
    """The share of what a finding saves that is left once another one is fixed."""
    saves = _saved(mine.speedup)
    if saves <= 0:
        return 1.0
    both = case.changes[first.code].combined(case.changes[mine.code])
    together = case.gain(left_by_replay(case, both), code=mine.code).speedup
    return min(1.0, max(0.0, _saved(together) - _saved(first.speedup)) / saves)


def _saved(speedup: Interval) -> float:
    """The share of the step."""
    return 1 - 1 / speedup.mid
