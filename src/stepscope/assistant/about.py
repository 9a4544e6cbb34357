"""What the report has about one handle, within the tokens of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stepscope import units
from stepscope.assistant.handles import Handle, not_there, parse_handle
from stepscope.assistant.summary import describe_kernel, describe_op, named
from stepscope.assistant.tokens import Block, fit_blocks
from stepscope.assistant.untrusted import NOTE, clean, quote, quoter_of
from stepscope.errors import StepscopeError
from stepscope.registers.policy.assistant import ANSWER_TOKENS
from stepscope.reports.model.report import Finding, Report, StepRow
from stepscope.reports.render.brief import brief_name
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.summary import own_steps, placed
from stepscope.reports.wording.values import share

_DETAIL = 600
_EVIDENCE = 160
_KERNELS = 20
_FACTS = 8


def as_about(report: Report, wanted: str, budget: int = ANSWER_TOKENS) -> str:
    """The answer for the handle; an error where it means nothing here."""
    found = parse_handle(wanted)
    if found.kind not in _ABOUT:
        raise StepscopeError(f"A report has no {found.kind}s.", fix="The tool `events` takes this handle.")
    return fit_blocks([Block("", [NOTE], 1), *_ABOUT[found.kind](report, found)], budget)


def find_finding(report: Report, wanted: Handle) -> Finding:
    """By its number in the report, or by its code."""
    numbered = {str(number): each for number, each in enumerate(report.findings, 1)}
    chosen = numbered.get(wanted.name) or next(
        (each for each in report.findings if each.code == wanted.name), None
    )
    if chosen is None:
        raise not_there(wanted)
    return chosen


def _finding(report: Report, wanted: Handle) -> Iterator[Block]:
    finding, quoter = find_finding(report, wanted), quoter_of(report)
    yield Block("", [f"{finding.code}: {quoter.sentence(finding.title, _DETAIL)}"], 1)
    yield Block("detail", [quoter.sentence(finding.detail, _DETAIL)], 1)
    yield Block("fix", [quoter.sentence(finding.fix, _DETAIL)] if finding.fix else [], 1)
    yield Block("promise", [*_promise(finding)], 3)
    places = [quote(f"{place.file}:{place.line} {place.function}", 160) for place in finding.where]
    yield Block("where", places, 2)
    yield Block("evidence", [*_evidence(finding.evidence)], 2)


def _promise(finding: Finding) -> Iterator[str]:
    yield f"owns {share(finding.share)} of the recorded step; cause with certainty {finding.certainty:.2f}"
    if finding.saves_ns_per_step > 0:
        speedup, left = finding.speedup, finding.left_ns_per_step
        yield f"speed-up {speedup.low:.2f} to {speedup.high:.2f}, probably {speedup.mid:.2f}"
        if left is not None:
            low, mid, high = map(units.duration, (left.low, left.mid, left.high))
            yield f"step after the fix: {low} to {high}, probably {mid}"


def _evidence(evidence: dict[str, Any]) -> Iterator[str]:
    for key, value in evidence.items():
        if isinstance(value, list):
            for each in value:
                yield f"{key}: {_value(each)}"
        else:
            yield f"{key}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return str(value)
    if isinstance(value, dict):
        shown = [f"{clean(key, 40)} {_value(each)}" for key, each in list(value.items())[:_FACTS]]
        left = len(value) - len(shown)
        return ", ".join([*shown, *([f"… {left} more"] if left else [])])
    return quote(value, _EVIDENCE)


def _part(report: Report, wanted: Handle) -> Iterator[Block]:
    row = next((row for row in report.breakdown if row.part == wanted.name), None)
    if row is None:
        raise not_there(wanted)
    steps = own_steps(report)
    yield Block(
        "", [f"{part(row.part).title}: {share(row.share)} of the step, {units.duration(row.ns / steps)}"], 1
    )
    names = [
        f"{units.duration(each.ns / steps)} {placed(quote(brief_name(each.name)), each.place)}"
        + (f", {quote(each.detail, _EVIDENCE)}" if each.detail else "")
        for each in row.names
    ]
    yield Block("by name, per step", names, 5, max(0, row.names_total - len(names)))


def _op(report: Report, wanted: Handle) -> Iterator[Block]:
    rows = [row for row in report.ops.rows if wanted.means(row.name)]
    if not rows:
        raise not_there(wanted)
    yield Block("", [quote(rows[0].name, _EVIDENCE)], 1)
    yield Block("rows of this op, over all steps", [describe_op(row) for row in rows], 3)
    kernels = [row for row in report.kernels.rows if row.op == rows[0].name]
    listed = [f"{named('kernel', row.name)}: {describe_kernel(row)}" for row in kernels[:_KERNELS]]
    yield Block("its kernels", listed, 3, len(kernels) - len(listed))


def _kernel(report: Report, wanted: Handle) -> Iterator[Block]:
    rows = [row for row in report.kernels.rows if wanted.means(row.name)]
    if not rows:
        raise not_there(wanted)
    yield Block("", [quote(rows[0].name, _EVIDENCE)], 1)
    facts = [
        f"{row.calls} calls, mean {units.duration(row.mean_ns)}, {units.duration(row.min_ns)} to "
        f"{units.duration(row.max_ns)}, {row.precision}, grid {row.grid}, block {row.block}, occupancy {row.occupancy}"
        + (f", of {named('op', row.op)}" if row.op else "")
        for row in rows
    ]
    yield Block("by launch shape", facts, 3)


def _step(report: Report, wanted: Handle) -> Iterator[Block]:
    rows = [row for row in report.steps.rows if str(row.step) == wanted.name]
    if not rows:
        raise not_there(wanted)
    for row in rows:
        is_odd = ", an outlier" if row.outlier else ", partial" if row.partial else ""
        length = units.duration(row.duration_ns)
        title = f"step {row.step} of rank {row.rank}: {length}{is_odd}; by part, and beyond the mean of the others"
        yield Block(title, [*_parts_of(report, row)], 4)


def _parts_of(report: Report, row: StepRow) -> Iterator[str]:
    others = [
        each
        for each in report.steps.rows
        if each.rank == row.rank and each.step != row.step and not each.partial and each.device == row.device
    ]
    for name, ns in sorted(row.parts.items(), key=lambda item: -item[1]):
        if not ns:
            continue
        usual = sum(each.parts.get(name, 0) for each in others) / len(others) if others else 0
        beyond = f", {'+' if ns >= usual else '-'}{units.duration(abs(ns - usual))}" if others else ""
        yield f"{part(name).title}: {units.duration(ns)}{beyond}"


def _problem(report: Report, wanted: Handle) -> Iterator[Block]:
    found = [problem for problem in report.problems if problem.code == wanted.name]
    if not found:
        raise not_there(wanted)
    for problem in found:
        lines = [
            problem.title,
            f"evidence: {quote(problem.detail, _DETAIL)}",
            f"cause: {problem.cause}",
            f"fix: {problem.fix}",
        ]
        yield Block(f"{problem.severity}, {problem.code}", lines, 4)


_ABOUT: dict[str, Callable[[Report, Handle], Iterator[Block]]] = {
    "finding": _finding,
    "part": _part,
    "op": _op,
    "kernel": _kernel,
    "step": _step,
    "problem": _problem,
}
