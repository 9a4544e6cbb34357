"""A diagnosis as text: failed checks with evidence and fix, and the rest in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from rich.text import Text

from stepscope.doctor.result import Diagnosis, Result
from stepscope.safe import safe

INDENT = "  "
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def lines(found: Diagnosis, *, verbose: bool = False, width: int | None = None) -> Iterator[Text]:
    """Failures first, then notes, then the number of passed checks. `verbose` names them."""
    yield Text.assemble((safe(found.subject), "bold"), f": {_verdict(found)}")
    for name, fact in found.facts.items():
        yield Text.assemble((f"{INDENT}{name:<12}", "dim"), safe(fact))
    for result in found.results:
        yield Text()
        yield from _result(result, width)
    yield Text()
    yield Text(_rest(found), style="dim")
    if verbose:
        yield from _everything(found)


def _verdict(found: Diagnosis) -> str:
    failed, notes = len(found.failures), len(found.notes)
    also = f", {_plural(notes, 'note')}" if notes else ""
    return f"{_plural(failed, 'problem') if failed else 'no problems found'}{also}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _result(result: Result, width: int | None) -> Iterator[Text]:
    yield Text.assemble(
        (f"{result.severity}: ", _STYLES.get(result.severity, "")),
        (safe(result.title), "bold"),
        (f"  [{result.code}]", "dim"),
    )
    yield from _indented(result.evidence, "", width)
    yield from _indented(result.cause, "", width)
    yield from _indented(result.fix, "→ ", width)


def _indented(text: str, mark: str, width: int | None) -> Iterator[Text]:
    """The lines of the text, wrapped to the window."""
    for number, line in enumerate(text.splitlines()):
        begin = mark if number == 0 else " " * len(mark)
        space = max(30, width - len(INDENT) - len(mark)) if width is not None else len(line) + 1
        for place, piece in enumerate(
            wrap(safe(line), space, break_long_words=False, break_on_hyphens=False)
        ):
            yield Text(INDENT + (begin if place == 0 else " " * len(mark)) + piece)


def _rest(found: Diagnosis) -> str:
    skipped = f", {len(found.not_looked_at)} did not apply" if found.not_looked_at else ""
    return f"{_plural(len(found.passed), 'check')} passed{skipped}."


def _everything(found: Diagnosis) -> Iterator[Text]:
    if found.passed:
        yield Text(f"{INDENT}passed: {', '.join(found.passed)}", style="dim")
    for reason in Counter(each.reason for each in found.not_looked_at):
        codes = ", ".join(each.code for each in found.not_looked_at if each.reason == reason)
        yield Text(f"{INDENT}{safe(reason)}: {codes}", style="dim")
