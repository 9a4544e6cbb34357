"""A diff on one screen: the verdict, the lines that explain it, findings that changed, and the parts of a step."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec
from rich.text import Text

from stepscope.diffs.data.model import Diff
from stepscope.diffs.render.cells import (
    LEGEND,
    FindingGroup,
    Listing,
    describe_finding,
    describe_run,
    list_finding_groups,
    list_tables,
)
from stepscope.diffs.render.text import STYLES, render_lines, render_table
from stepscope.names import cut_middle
from stepscope.registers.policy.diffs import (
    DIFF_BRIEF_CAVEATS,
    DIFF_BRIEF_FINDINGS,
    DIFF_BRIEF_LINES,
    DIFF_BRIEF_NAME,
    DIFF_BRIEF_VERDICT,
)
from stepscope.registers.policy.tables import ACCOUNT_ROWS_LEAST, REPORT_LINES, REPORT_WIDTH
from stepscope.reports.render.text_grid import fold
from stepscope.safe import safe

_PREFIX = len("A    ")
_AROUND = ("an empty line", "the title", "the head")  # of a table
_MARKS = {"findings gained": "gained", "findings lost": "lost", "findings that grew or shrank": "changed"}


def as_brief(diff: Diff) -> str:
    """Without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in brief_diff_lines(diff))


def brief_diff_lines(diff: Diff, width: int = REPORT_WIDTH) -> list[Text]:
    """At most 25 lines; --full has the rest."""
    explained = msgspec.structs.replace(diff, lines=diff.lines[:DIFF_BRIEF_LINES])
    top = [
        *_runs(diff, width),
        Text(),
        *_paragraph(diff.verdict, width, DIFF_BRIEF_VERDICT, "bold"),
        *_caveats(diff, width),
    ]
    top += [*render_lines(explained, width), *_findings(diff, width)]
    end = [Text(), Text(cut_middle(LEGEND, width), "dim"), *_command(diff, width)]
    return [*top, *_parts(diff, width, REPORT_LINES - len(top) - len(end)), *end]


def _runs(diff: Diff, width: int) -> Iterator[Text]:
    for letter, run in (("A", diff.a), ("B", diff.b)):
        about = safe(describe_run(run))
        name = cut_middle(safe(run.name or run.path), max(DIFF_BRIEF_NAME, width - len(about) - _PREFIX))
        yield Text.assemble(
            (f"{letter}  ", "bold"), (name, "bold"), f"  {cut_middle(about, width - len(name) - _PREFIX)}"
        )


def _paragraph(text: str, width: int, most: int, style: str) -> Iterator[Text]:
    found = fold(safe(text), width - len(" …"))
    if len(found) > most:
        found = [*found[: most - 1], f"{found[most - 1]} …"]
    yield from (Text(line, style) for line in found)


def _caveats(diff: Diff, width: int) -> Iterator[Text]:
    for caveat in diff.not_comparable[:DIFF_BRIEF_CAVEATS]:
        yield from _paragraph(f"! {caveat}", width, 1, "yellow")


def _findings(diff: Diff, width: int) -> Iterator[Text]:
    """A line for each that changed significantly."""
    found = [(group, change) for group in list_finding_groups(diff) for change in group.changes]
    if found:
        yield Text()
    for group, change in found[:DIFF_BRIEF_FINDINGS]:
        yield Text(
            cut_middle(f"{_mark(group)}: {safe(describe_finding(change))}", width), STYLES[group.is_worse]
        )


def _mark(group: FindingGroup) -> str:
    return f"finding {_MARKS.get(group.title, 'changed')}"


def _parts(diff: Diff, width: int, room: int) -> list[Text]:
    """The parts that differ most, as many as there is room for: an empty line, the title and the head come with them."""
    listing = next((found for found in list_tables(diff, 0) if found.name == "parts"), None)
    rows = room - len(_AROUND)
    if listing is None or rows < ACCOUNT_ROWS_LEAST:
        return []
    kept = listing.rows[:rows]
    return list(
        render_table(Listing(listing.name, listing.title, kept, len(kept), listing.significant), width)
    )


def _command(diff: Diff, width: int) -> Iterator[Text]:
    paths = " ".join(shlex.quote(safe(run.path)) for run in (diff.a, diff.b))
    command = f"more  stepscope diff {paths} --full"
    yield Text(command if len(command) <= width else "more  stepscope diff A B --full", "dim")
