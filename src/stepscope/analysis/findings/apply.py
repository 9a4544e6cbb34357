"""What holds the step up, ranked by the time it would save: each finding owns its own slices of the account.

`speedup_max` is the bound from the account: all the time the finding owns, gone. `speedup` is the estimate from the
replay: the recorded steps replayed, without the profiler's share, with the change applied.
"""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, order
from stepscope.analysis.findings.registry import find_rules
from stepscope.analysis.findings.situations import fitted


def apply_rules(case: Case) -> list[Finding]:
    """All findings worth showing: what threatens the run first, then by time saved."""
    if case.all_slices.is_empty():
        return []
    for rule in find_rules():
        case.earlier += rule.findings(case)
    return sorted(fitted(case, case.earlier), key=order)
