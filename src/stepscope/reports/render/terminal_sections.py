"""The sections that a terminal shows as words and bars: problems, findings, the account, the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from stepscope import units
from stepscope.names import cut_middle, short_name
from stepscope.reports.model.report import BreakdownRow, Finding, Problem, Report, StepRow
from stepscope.reports.render.text_grid import bar, fold, lines, sparkline
from stepscope.reports.wording.facts import inflation
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.summary import (
    basis,
    gain,
    in_order,
    longest_names,
    own_steps,
    placed,
    sampled,
    together,
)
from stepscope.reports.wording.values import share
from stepscope.safe import safe

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_RANKS_DRAWN = 16
_BAR = 12
_NAME = 40


def heading(title: str, detail: str = "") -> Iterator[Text]:
    """An empty line and the title."""
    yield Text()
    yield Text.assemble((title, "bold"), (f"  {detail}" if detail else "", "dim"))


def wrapped(text: str, width: int, indent: str, mark: str = "") -> Iterator[Text]:
    """The text in lines that fit."""
    for number, line in enumerate(fold(safe(text), width - len(indent) - len(mark))):
        yield Text(indent + (mark if number == 0 else " " * len(mark)) + line)


def cut(total: int, shown: int, what: str) -> Iterator[Text]:
    """A warning that rows were left out, and how to get them."""
    if total > shown:
        yield Text(f"  … {shown:,} of {total:,} rows of {what}; --limit 0 shows all", style="yellow")


def problems(report: Report, width: int, limit: int) -> Iterator[Text]:
    """Defects of the capture come first: they say how far the rest can be trusted. Notes are only named."""
    notes = [problem.code for problem in report.problems if problem.severity == "info"]
    for problem in report.problems:
        if problem.severity != "info":
            yield from _problem(problem, width)
    if notes:
        yield Text()
        count = f"{len(notes)} note{'s' if len(notes) > 1 else ''} on the capture"
        yield Text(safe(f"{count}: {', '.join(notes)}; see --section problems"), style="dim")


def every_problem(report: Report, width: int, limit: int) -> Iterator[Text]:
    """All of them in full."""
    for problem in report.problems:
        yield from _problem(problem, width)
    if not report.problems:
        yield Text()
        yield Text("Nothing is wrong with the capture.", style="green")


def _problem(problem: Problem, width: int) -> Iterator[Text]:
    yield Text()
    rank = f" (rank {problem.rank})" if problem.rank is not None else ""
    label = (f"{problem.severity}: ", _STYLES.get(problem.severity, ""))
    yield Text.assemble(label, (safe(problem.title), "bold"), rank)
    yield from wrapped(problem.detail, width, "  ")
    if problem.cause:
        yield from wrapped(problem.cause, width, "  ")
    if problem.fix:
        yield from wrapped(problem.fix, width, "  ", "→ ")


def findings(report: Report, width: int, limit: int) -> Iterator[Text]:
    """Ranked as the report ranks them, each with what it saves and what to change."""
    if not report.findings:
        return
    yield from heading("what to change", sampled(report))
    kept = report.findings[:limit] if limit else report.findings
    for number, finding in enumerate(kept, 1):
        yield from _finding(report, number, finding, width)
    yield from cut(len(report.findings), len(kept), "findings")
    if all_of_them := together(report):
        yield Text(f"  {all_of_them}", style="green")


def _finding(report: Report, number: int, finding: Finding, width: int) -> Iterator[Text]:
    label = (f"  {number}. ", "bold")
    yield Text.assemble(label, (safe(finding.title), "bold"), (f"  {safe(finding.code)}", "dim"))
    if finding.saves_ns_per_step > 0:
        yield Text(f"     {gain(report, finding)}", style="green")
    yield from wrapped(finding.detail, width, "     ")
    if finding.fix:
        yield from wrapped(finding.fix, width, "     ", "→ ")


def breakdown(report: Report, width: int, limit: int) -> Iterator[Text]:
    """The account as one bar, then part by part with what it went to."""
    if not report.breakdown:
        return
    yield from heading("where the time goes", basis(report))
    rows = in_order(report.breakdown)
    cells = [_part_cells(row, own_steps(report)) for row in rows]
    yield from lines(cells, [False, True, True, False, False], [False, False, False, False, True], width)


def _part_cells(row: BreakdownRow, steps: int) -> list[Text]:
    about = part(row.part)
    figures = [Text(about.title), Text(share(row.share)), Text(units.duration(row.ns / steps))]
    return [*figures, Text(bar(row.share, _BAR), about.terminal), Text(_names(row), "dim")]


def _names(row: BreakdownRow) -> str:
    """The longest names; what says more is with the first, if that is what most of the part went to."""
    words = []
    for number, each in enumerate(longest_names(row)):
        more = (
            f" ({_clipped(short_name(each.detail))})"
            if each.detail and not number and each.ns > row.ns / 2
            else ""
        )
        name = placed(_clipped(short_name(each.name)), each.place)
        words.append(f"{name}{more} {100 * each.ns / row.ns:.0f} %")
    return safe(", ".join(words))


def _clipped(name: str) -> str:
    return cut_middle(name, _NAME)


def steps(report: Report, width: int, limit: int) -> Iterator[Text]:
    """The durations as a curve for each rank, then in figures."""
    found = report.steps
    if not found.rows or found.median_ns is None or found.source == "whole":
        return
    first, *more = fold(_counted(report), width - len("steps  "))
    yield from heading("steps", first)
    yield from (Text(f"  {line}", "dim") for line in more)
    ranks = report.profile.ranks[:_RANKS_DRAWN]
    for rank in ranks:
        own = [
            row
            for row in found.rows
            if row.rank == rank and found.critical_devices.get(str(rank)) == row.device
        ]
        if own:
            yield _curve(own, f"  rank {rank:<4}" if len(report.profile.ranks) > 1 else "  ", width)
    yield from cut(len(report.profile.ranks), len(ranks), "ranks")
    figures = (
        ("median", found.median_ns), ("p10", found.p10_ns), ("p90", found.p90_ns), ("min", found.min_ns), ("max", found.max_ns)
    )  # fmt: skip
    yield Text("  " + ", ".join(f"{name} {units.duration(ns)}" for name, ns in figures if ns is not None))
    if slowed := inflation(report):
        yield Text(f"  slowed down by the profiler {slowed}")


def _counted(report: Report) -> str:
    found = report.steps
    notes = [f"{found.outliers:,} outlier{'s' if found.outliers > 1 else ''}" if found.outliers else ""]
    notes += [f"{found.partial:,} incomplete, left out" if found.partial else ""]
    notes += [f"{found.warm_ups:,} of warm-up, left out" if found.warm_ups else ""]
    sure = f", {found.confidence} confidence" if found.confidence else ""
    how = f"marked by {cut_middle(found.name, _NAME)}" if found.name else found.source
    by = f"{found.count:,} ({how}{sure})"
    covers = f"{share(found.covers)} of the recorded device time" if found.covers is not None else ""
    return safe("; ".join(filter(None, [by, *notes, covers])))


def _curve(rows: list[StepRow], label: str, width: int) -> Text:
    values = [row.duration_ns for row in rows]
    return Text.assemble(label, (sparkline(values, width - len(label) - 2), "cyan"))


# Where a section was asked for by name.
ASKED_FOR: Mapping[str, Callable[[Report, int, int], Iterator[Text]]] = {"problems": every_problem}
IN_WORDS: Mapping[str, Callable[[Report, int, int], Iterator[Text]]] = {
    "problems": problems,
    "findings": findings,
    "breakdown": breakdown,
    "steps": steps,
}
