"""The report for an assistant: the verdict, the account, findings with their intervals and places, what is not known, and handles."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope import units
from stepscope.assistant.handles import handle
from stepscope.assistant.tokens import Block, fit_blocks
from stepscope.assistant.untrusted import NOTE, Quoter, quote, quoter_of
from stepscope.registers.policy.assistant import ANSWER_TOKENS, FIX_LONGEST, REPORT_TOKENS
from stepscope.reports.model.report import Finding, KernelRow, OpRow, Report
from stepscope.reports.render.brief import brief_name
from stepscope.reports.wording.headline import about_line
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.sentence import opening
from stepscope.reports.wording.summary import in_order, own_steps
from stepscope.reports.wording.unknown import what_is_unknown
from stepscope.reports.wording.values import share

_SENTENCE = 700
_LISTED = 8


def as_summary(report: Report, budget: int = REPORT_TOKENS) -> str:
    """Everything that is worth knowing first, in at most `budget` tokens."""
    quoter = quoter_of(report)
    blocks = [
        Block("", [NOTE], 1),
        Block("", [_what(report)], 1),
        Block("verdict", [quoter.sentence(opening(report), _SENTENCE)], 1),
        Block("findings", [*_findings(report, quoter)], 3),
        Block("problems of the recording", [*_problems(report)], 2),
        Block("not known", [quoter.sentence(each, FIX_LONGEST) for each in what_is_unknown(report)], 1),
        Block("where the time of a step goes", [*_account(report)], 4),
        Block("ops, over all steps", [*_ops(report)], 1, max(0, report.ops.total - _LISTED)),
        Block("kernels, over all steps", [*_kernels(report)], 1, max(0, report.kernels.total - _LISTED)),
        Block("outlier steps", [*_outliers(report)], 1),
    ]
    more = "more: ask for a handle, such as finding:1 (stepscope report PATH --about HANDLE)"
    end = Block("", [more], 1)
    return fit_blocks([*blocks, end], budget)


def as_findings(report: Report, budget: int = ANSWER_TOKENS) -> str:
    """The findings alone."""
    quoter = quoter_of(report)
    found = [*_findings(report, quoter)]
    if not found:
        return f"No findings. {quoter.sentence(opening(report), _SENTENCE)}\n"
    return fit_blocks([Block("", [NOTE], 1), Block("findings", found, 3)], budget)


def _what(report: Report) -> str:
    name = quote(report.profile.name or report.profile.path)
    return f"profile {name}: {quote(about_line(report), 160)}"


def _findings(report: Report, quoter: Quoter) -> Iterator[str]:
    for number, finding in enumerate(report.findings, 1):
        facts = "; ".join(filter(None, (_gain(report, finding), _place(finding))))
        title = quoter.sentence(finding.title, FIX_LONGEST)
        fix = quoter.sentence(finding.fix, FIX_LONGEST)
        yield f"finding:{number} {finding.code}: {title}{f' ({facts})' if facts else ''}" + (
            f"\n  fix: {fix}" if fix else ""
        )


def _gain(report: Report, finding: Finding) -> str:
    if finding.saves_ns_per_step <= 0:
        return ""
    speedup = finding.speedup
    return (
        f"speed-up {speedup.low:.2f} to {speedup.high:.2f}, probably {speedup.mid:.2f}; "
        f"saves {units.duration(finding.saves_ns_per_step)}{'' if report.steps.source == 'whole' else ' per step'}"
    )


def _place(finding: Finding) -> str:
    if not finding.where:
        return ""
    where = finding.where[0]
    return f"at {quote(f'{where.file}:{where.line} {where.function}')}"


def _problems(report: Report) -> Iterator[str]:
    for problem in report.problems:
        yield f"problem:{problem.code} {problem.severity}: {problem.title}"


def _account(report: Report) -> Iterator[str]:
    steps = own_steps(report)
    for row in sorted(in_order(report.breakdown), key=lambda row: -row.ns):
        yield f"part:{row.part} {part(row.part).title}: {share(row.share)}, {units.duration(row.ns / steps)}"


def _ops(report: Report) -> Iterator[str]:
    for row in report.ops.rows[:_LISTED]:
        yield f"{named('op', row.name)}: {describe_op(row)}"


def named(kind: str, name: str) -> str:
    """The handle, and the name where the handle does not hold it. Both are the profile's words."""
    short = handle(kind, name)
    return quote(short) if short == f"{kind}:{name}" else f"{quote(short)} {quote(brief_name(name))}"


def describe_op(row: OpRow) -> str:
    """An op in a line."""
    of = f"{share(row.share)}, " if row.share is not None else ""
    scope = f", in {quote(row.scope)}" if row.scope else ""
    device = f"{units.duration(row.device_self_ns)} on the device, " if row.device_self_ns else ""
    return f"{of}{device}{units.duration(row.host_self_ns)} on the host, {row.calls} calls{scope}"


def _kernels(report: Report) -> Iterator[str]:
    for row in report.kernels.rows[:_LISTED]:
        yield f"{named('kernel', row.name)}: {describe_kernel(row)}"


def describe_kernel(row: KernelRow) -> str:
    """A kernel in a line."""
    of = f"{share(row.share)}, " if row.share is not None else ""
    op = f", of {quote(row.op)}" if row.op else ""
    return f"{of}{units.duration(row.total_ns)} in {row.calls} calls, {row.precision}{op}"


def _outliers(report: Report) -> Iterator[str]:
    for row in sorted((row for row in report.steps.rows if row.outlier), key=lambda row: -row.duration_ns):
        yield f"step:{row.step} {units.duration(row.duration_ns)} on rank {row.rank}"
