"""A diff as GitHub Markdown: short enough for a comment on a pull request, its tables folded away."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.diffs.data.model import Diff, FindingChange, Run
from stepscope.diffs.render.cells import (
    Listing,
    about,
    cells,
    clipped,
    finding_words,
    line_figures,
    listings,
    title_of,
    why_title,
)
from stepscope.reports.render.markdown import code, text

ROWS = 10
LONGEST_NAME = 90
_OPEN = ("figures", "parts")


def as_markdown(found: Diff, *, limit: int = ROWS) -> str:
    """The verdict, what explains it, and tables."""
    return "\n".join(_lines(found, limit)) + "\n"


def _lines(found: Diff, limit: int) -> Iterator[str]:
    mark = "🔺" if found.step.significant and found.step.difference > 0 else "✅"
    yield f"### {mark} {text(found.verdict)}"
    yield ""
    yield from (_run(letter, run) for letter, run in (("A", found.a), ("B", found.b)))
    yield from (f"- ⚠️ {text(remark)}" for remark in found.not_comparable)
    if found.lines:
        yield ""
        yield f"| | {why_title(found)} | difference | |"
        yield "|---:|---|---:|---|"
        for number, line in enumerate(found.lines, 1):
            figure, of_change = line_figures(line)
            title = text(clipped(line.title, LONGEST_NAME))
            yield f"| {number} | {title} | {figure} | {of_change or text(clipped(line.detail, LONGEST_NAME))} |"
    yield from _findings("Findings gained", found.gained)
    yield from _findings("Findings lost", found.lost)
    yield from _findings("Findings that grew or shrank", found.kept)
    for listing in listings(found, limit):
        if listing.rows:
            yield from _table(listing)


def _run(letter: str, run: Run) -> str:
    return f"- **{letter}** {code(run.name or run.path)} {text(about(run))}"


def _findings(title: str, changes: list[FindingChange]) -> Iterator[str]:
    kept = [change for change in changes if change.significant]
    if kept:
        yield ""
        yield f"**{title}:** " + "; ".join(text(finding_words(change)) for change in kept)


def _table(listing: Listing) -> Iterator[str]:
    is_open = listing.name in _OPEN
    sure = sum(row.significant for row in listing.rows)
    yield ""
    if not is_open:
        yield f"<details><summary>{listing.title}: {sure} of {listing.total} differ by more than chance</summary>"
        yield ""
    yield f"| {listing.title} | A | B | difference | | ± |"
    yield "|---|---:|---:|---:|---:|---:|"
    for row in listing.rows:
        name = code(clipped(title_of(row, listing.name), LONGEST_NAME))
        a, b, difference, relative, noise = cells(row)
        bold = f"**{difference}**" if row.significant else difference
        yield f"| {name} | {a} | {b} | {bold} | {relative} | {noise} |"
    if listing.total > len(listing.rows):
        yield ""
        yield f"*{len(listing.rows):,} of {listing.total:,} rows.*"
    if not is_open:
        yield ""
        yield "</details>"
