"""Work of the host that only a wait keeps from running beside the device: the wait comes first, and it second.

Once the host no longer waits, it prepares the next batch while the device computes. Not to wait is the smaller change, so that
of what both findings would save, only what is then left counts for the one about the work.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import left_by_replay
from stepscope.registers.policy.findings import MAJORITY

_WAITS = "device-sync"
_WORKS = ("host-python", "input-bound")
_DETAIL = " Most of it would run while the device computes, if the host did not wait for the device: see device-sync."


def put_behind_waits(case: Case) -> None:
    """Lower how much is expected of such findings, and say why."""
    for finding, still_saved in _hidden(case):
        finding.certainty *= still_saved
        if still_saved < MAJORITY:
            finding.detail += _DETAIL


def _hidden(case: Case) -> Iterator[tuple[Finding, float]]:
    """Findings about such work, and the share of their saving that is left when the host does not wait."""
    found = {each.code: each for each in case.earlier if each.class_ == "time" and each.code in case.changes}
    waits = found.get(_WAITS)
    if waits is None:
        return
    for code in _WORKS:
        if code not in found:
            continue
        both = case.changes[_WAITS].combined(case.changes[code])
        together = case.gain(left_by_replay(case, both), code=code).speedup
        mine = _saved(found[code].speedup)
        if mine > 0:
            yield found[code], min(1.0, max(0.0, _saved(together) - _saved(waits.speedup)) / mine)


def _saved(speedup: Interval) -> float:
    """The share of the step."""
    return 1 - 1 / speedup.mid
