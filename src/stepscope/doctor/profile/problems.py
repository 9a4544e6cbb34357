"""What the report calls problems, as checks: the texts for each of its codes. Nothing is looked for twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepscope.doctor.check import Check, Sign, always
from stepscope.doctor.profile.subject import Examined, needs_profile
from stepscope.trace.problem_texts_capture import CAPTURE
from stepscope.trace.problem_texts_file import FILE
from stepscope.trace.problems import Severity
from stepscope.trace.texts import Texts

# Also reported for folders without a profile.
_OF_FOLDERS = ("leftover-files", "never-stopped")
KNOWN: dict[str, Texts] = {**CAPTURE, **FILE}


def _told(code: str) -> Callable[[Examined], Iterator[Sign]]:
    """A check that asks the report's problems for its code."""

    def look(subject: Examined) -> Iterator[Sign]:
        for problem in subject.problems:
            if problem.code == code:
                rank = f" On rank {problem.rank}." if problem.rank is not None else ""
                yield Sign(
                    f"{problem.detail or problem.title}{rank}",
                    problem.fix,
                    problem.title,
                    _severity(problem.severity),
                )

    return look


_SEVERITIES: dict[str, Severity] = {"error": "error", "warning": "warning", "info": "info"}


def _severity(text: str) -> Severity:
    return _SEVERITIES.get(text, "warning")


CHECKS: list[Check[Examined]] = [
    Check(
        code,
        "profile",
        texts.title,
        texts.cause,
        texts.fix,
        texts.severity,
        _told(code),
        always if code in _OF_FOLDERS else needs_profile,
    )
    for code, texts in KNOWN.items()
]
