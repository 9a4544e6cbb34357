"""The report as GitHub Markdown, for issues, pull requests and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from stepscope import units
from stepscope.names import short_name
from stepscope.reports.model.report import Finding, Problem, Report
from stepscope.reports.tables.table import Column, Table
from stepscope.reports.tables.tables import ORDER, TITLES, tables_of
from stepscope.reports.wording.facts import VERDICT, facts_of
from stepscope.reports.wording.headline import figures, title
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.sentence import opening
from stepscope.reports.wording.summary import basis, gain, in_order, longest_names, own_steps, placed, sampled
from stepscope.reports.wording.values import framework, share, shown
from stepscope.safe import safe

ROWS = 20
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$]|:(?=[a-z+-][\w+-]*:))")


def as_markdown(report: Report, *, sections: Collection[str] | None = None, limit: int = ROWS) -> str:
    """The whole report, or some of its sections; tables have at most `limit` rows, 0 for all."""
    return "\n".join(_lines(report, sections, limit)) + "\n"


def _lines(report: Report, sections: Collection[str] | None, limit: int) -> Iterator[str]:
    yield f"# {text(title(report))}"
    yield ""
    yield text(" · ".join([framework(report.profile.framework), *figures(report)]))
    if said := opening(report):
        yield ""
        yield text(said)
    for name in ORDER:
        if sections is None or name in sections:
            yield from _WORDS.get(name, _section)(report, name, limit)


def text(value: str) -> str:
    """Words that Markdown must not take as anything else, nor GitHub as a mention of a user."""
    return _SPECIAL.sub(r"\\\1", safe(value)).replace("@", "@<!-- -->")


def code(name: str) -> str:
    """A name as code. Its fence is longer than any run of backquotes in it; a table needs its bars escaped even there."""
    shown_name = safe(name).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown_name)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{shown_name}{pad}{fence}"


def _heading(section: str) -> Iterator[str]:
    yield ""
    yield f"## {TITLES[section]}"
    yield ""


def _problems(report: Report, _: str, limit: int) -> Iterator[str]:
    if report.problems:
        yield from _heading("problems")
        yield from (_problem(problem) for problem in report.problems)


def _problem(problem: Problem) -> str:
    rank = f" (rank {problem.rank})" if problem.rank is not None else ""
    cause = f" {text(problem.cause)}" if problem.cause else ""
    fix = f" → {text(problem.fix)}" if problem.fix else ""
    return f"- **{problem.severity}: {text(problem.title)}**{rank} {text(problem.detail)}{cause}{fix}"


def _findings(report: Report, _: str, limit: int) -> Iterator[str]:
    if not report.findings:
        return
    yield from _heading("findings")
    if made_of := sampled(report):
        yield from (f"Found {made_of}.", "")
    kept = report.findings[:limit] if limit else report.findings
    yield from (_finding(report, number, finding) for number, finding in enumerate(kept, 1))
    yield from _cut(len(report.findings), len(kept))


def _finding(report: Report, number: int, finding: Finding) -> str:
    saved = f", {gain(report, finding)}" if finding.saves_ns_per_step > 0 else ""
    fix = f" → {text(finding.fix)}" if finding.fix else ""
    return f"{number}. **{text(finding.title)}** (`{finding.code}`{saved}) {text(finding.detail)}{fix}"


def _breakdown(report: Report, _: str, limit: int) -> Iterator[str]:
    if not report.breakdown:
        return
    yield from _heading("breakdown")
    yield f"{text(basis(report)).capitalize()}."
    yield ""
    yield "| part | share | time | mostly |"
    yield "|---|---:|---:|---|"
    for row in in_order(report.breakdown):
        names = ", ".join(
            f"{placed(code(short_name(each.name)), each.place)} {100 * each.ns / row.ns:.0f} %"
            for each in longest_names(row)
        )
        yield f"| {part(row.part).title} | {share(row.share)} | {units.duration(row.ns / own_steps(report))} | {names} |"


def _steps(report: Report, name: str, limit: int) -> Iterator[str]:
    facts = facts_of(report, name)
    if facts:
        yield from _heading("steps")
        yield from (f"- {label}: {text(value)}" for label, value in facts)


def _section(report: Report, name: str, limit: int) -> Iterator[str]:
    facts = facts_of(report, name)
    tables = [table.head(limit) for table in tables_of(report, name)]
    if not facts and not tables:
        return
    yield from _heading(name)
    yield from (text(value) if label == VERDICT else f"- {label}: {text(value)}" for label, value in facts)
    for table in tables:
        if facts or table.title != name:
            yield ""
        if table.title != name:
            yield f"{table.title.capitalize()}:"
            yield ""
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    columns = [column for column in table.known() if not column.minor]
    yield "| " + " | ".join(column.title for column in columns) + " |"
    yield "|" + "|".join("---:" if column.is_numeric else "---" for column in columns) + "|"
    for row in table.rows:
        yield "| " + " | ".join(_cell(row.get(column.key), column) for column in columns) + " |"
    yield from _cut(table.total, len(table.rows))


def _cell(value: object, column: Column) -> str:
    words = shown(value, column.kind)
    if value is not None and column.kind == "name":
        return code(short_name(words))
    return text(words) if column.kind == "text" else words


def _cut(total: int, kept: int) -> Iterator[str]:
    if total > kept:
        yield ""
        yield f"*{kept:,} of {total:,} rows; `--limit 0` gives all.*"


_WORDS: dict[str, Callable[[Report, str, int], Iterator[str]]] = {
    "problems": _problems,
    "findings": _findings,
    "breakdown": _breakdown,
    "steps": _steps,
}
