"""A diff as GitHub Markdown: short enough for a comment on a pull request, its tables folded away."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.diffs.data.model import Diff, Row, Run
from stepscope.diffs.render.cells import (
    Listing,
    clip,
    describe_finding,
    describe_run,
    describe_subject,
    format_cells,
    format_line,
    list_finding_groups,
    list_tables,
    title_lines,
)
from stepscope.registers.policy.diffs import DIFF_LONGEST_NAME, DIFF_TEXT_ROWS
from stepscope.reports.render.markdown import code, text

_OPEN = ("figures", "parts")


def as_markdown(diff: Diff, *, limit: int = DIFF_TEXT_ROWS) -> str:
    """The verdict, what explains it, and tables."""
    return "\n".join(_render(diff, limit)) + "\n"


def _render(diff: Diff, limit: int) -> Iterator[str]:
    mark = "🔺" if diff.step.significant and diff.step.difference > 0 else "✅"
    yield f"### {mark} {text(diff.verdict)}"
    yield ""
    yield from (_render_run(letter, run) for letter, run in (("A", diff.a), ("B", diff.b)))
    yield from (f"- ⚠️ {text(caveat)}" for caveat in diff.not_comparable)
    yield from _render_lines(diff)
    for group in list_finding_groups(diff):
        yield ""
        changes = "; ".join(text(describe_finding(change)) for change in group.changes)
        yield f"**{group.title.capitalize()}:** {changes}"
    for listing in list_tables(diff, limit):
        yield from _render_table(listing)


def _render_run(letter: str, run: Run) -> str:
    return f"- **{letter}** {code(run.name or run.path)} {text(describe_run(run))}"


def _render_lines(diff: Diff) -> Iterator[str]:
    if not diff.lines:
        return
    yield ""
    yield f"| | {title_lines(diff)} | difference | |"
    yield "|---:|---|---:|---|"
    for number, line in enumerate(diff.lines, 1):
        figure, of_change = format_line(line)
        title = text(clip(line.title, DIFF_LONGEST_NAME))
        yield f"| {number} | {title} | {figure} | {of_change or text(clip(line.detail, DIFF_LONGEST_NAME))} |"


def _render_table(listing: Listing) -> Iterator[str]:
    is_open = listing.name in _OPEN
    yield ""
    if not is_open:
        yield f"<details><summary>{listing.title}: {listing.significant} of {listing.total} significant</summary>"
        yield ""
    yield f"| {listing.title} | A | B | difference | | ± noise |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield from (_render_row(row, listing.name) for row in listing.rows)
    if listing.total > len(listing.rows):
        yield ""
        yield f"*{len(listing.rows):,} of {listing.total:,} rows.*"
    if not is_open:
        yield ""
        yield "</details>"


def _render_row(row: Row, table: str) -> str:
    name = code(clip(describe_subject(row, table), DIFF_LONGEST_NAME))
    a, b, difference, relative, noise = format_cells(row)
    bold = f"**{difference}**" if row.significant else difference
    return f"| {name} | {a} | {b} | {bold} | {relative} | {noise} |"
