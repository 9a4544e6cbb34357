"""A rule that raises costs its own finding only: what it changed of the case is taken back, and the fault is kept for the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.faults import Fault, wants_tracebacks
from stepscope.analysis.findings.finding import Finding
from stepscope.errors import first_line, is_fault

T = TypeVar("T")


def spared(case: Case, what: str, ask: Callable[[], T], instead: Callable[[], T]) -> T:
    """The answer; if asking raises, the case as it was before, a fault in it, and what is to be had instead."""
    take_back = remember(case)
    try:
        return ask()
    except BaseException as error:
        if not is_fault(error) or wants_tracebacks():
            raise
        take_back()
        case.faults.append(Fault(what, first_line(error)))
        return instead()


def remember(case: Case) -> Callable[[], None]:
    """What makes the case as it is now, whatever a rule claims, changes or says of earlier findings until then."""
    known = vars(case)
    unclaimed, claims, slow = known.get("unclaimed"), list(case.claims), set(case.of_slow_steps)
    changes, earlier = dict(case.changes), [_copied(each) for each in case.earlier]

    def take_back() -> None:
        known.pop("unclaimed", None)
        if unclaimed is not None:
            case.unclaimed = unclaimed
        case.claims, case.of_slow_steps, case.changes, case.earlier = claims, slow, changes, earlier

    return take_back


def _copied(found: Finding) -> Finding:
    return msgspec.structs.replace(found, evidence=dict(found.evidence))
