"""The page docs/problems.md, made from the catalogue: python -m stepscope.problems.page docs/problems.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stepscope.markdown import write_page
from stepscope.problems import compared, file, hangs, ranks, recording
from stepscope.problems.entry import Entry, Words

# What a report can show; the doctor's own checks of a machine, a script or a folder are in docs/troubleshooting.md.
_REPORTED = (recording, file, ranks, hangs, compared)
_INTRODUCTION = """# Problems

A problem is a defect of the capture itself. A problem never stops stepscope from reading a profile: `stepscope info`, the report, the page
and `stepscope doctor` show it once, with the evidence, the cause and the fix, and the table [`problems`](tables.md#problems) keeps it. Where
a code has several rows of text, the facts of the case decide. `stepscope doctor` finds more: see [Troubleshooting](troubleshooting.md).

This page is generated from the catalogue that all of them use: `python -m stepscope.problems.page docs/problems.md`.
"""


def page() -> str:
    """The whole page, sorted by code."""
    entries = sorted(
        (entry for module in _REPORTED for entry in module.ENTRIES), key=lambda entry: entry.code
    )
    rows = [_row(entry) for entry in entries]
    return (
        "\n".join([_INTRODUCTION, "| code | severity | problem, cause and fix |", "|---|---|---|", *rows])
        + "\n"
    )


def _row(entry: Entry) -> str:
    usual, *others = entry.examples()
    cells = (f"`{entry.code}`", usual.severity, "<br>".join(_lines(usual, others)))
    return f"| {' | '.join(cells)} |"


def _lines(usual: Words, others: list[Words]) -> Iterator[str]:
    yield f"**{_escaped(usual.title)}.** {_escaped(usual.cause)}"
    yield f"→ {_escaped(usual.fix)}"
    for other in others:
        severity = f"{other.severity}: " if other.severity != usual.severity else ""
        title = f"**{_escaped(other.title)}.** " if other.title != usual.title else ""
        fix = f"→ {_escaped(other.fix)}" if other.fix != usual.fix else ""
        # A case that only weighs less needs no row of its own.
        if title or fix:
            yield f"{severity}{title}{fix}".strip()


def _escaped(text: str) -> str:
    """Angle brackets and bars are not markup here."""
    return text.replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
