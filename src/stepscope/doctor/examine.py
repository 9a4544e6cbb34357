"""Run every check, one after the other. A check that raises is reported as not looked at and does not affect the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stepscope.doctor.check import Check, Sign, Subject
from stepscope.doctor.result import Diagnosis, NotLookedAt, Result
from stepscope.trace.schema import SEVERITIES

RAISE = "STEPSCOPE_RAISE"  # in the environment: tracebacks of broken checks


def examine(
    subject: Subject, checks: Sequence[Check[Subject]], named: str, facts: dict[str, str] | None = None
) -> Diagnosis:
    """The diagnosis of one subject, shown as `named`."""
    found = Diagnosis(named, [], [], [], facts or {})
    for check in checks:
        reason = _ask(check, subject, found)
        if reason:
            found.not_looked_at.append(NotLookedAt(check.code, check.group, reason))
    found.results.sort(key=lambda result: SEVERITIES.index(result.severity))
    return found


def _ask(check: Check[Subject], subject: Subject, found: Diagnosis) -> str:
    """Add the check's results to the diagnosis, or return why there are none."""
    try:
        reason = check.needs(subject)
        if reason:
            return reason
        results = [_result(check, sign) for sign in check.look(subject)]
    except Exception as error:
        if os.environ.get(RAISE):
            raise
        return f"could not be answered: {type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
    found.results += results
    if not results:
        found.passed.append(check.code)
    return ""


def _result(check: Check[Subject], sign: Sign) -> Result:
    said = sign.words(check.entry)
    return Result(check.code, check.group, said.severity, said.title, sign.evidence, said.fix, said.cause)
