"""The table of formats in docs/formats.md, made from the formats: python -m stepscope.formats.page docs/formats.md"""

from __future__ import annotations

import sys
from pathlib import Path

from stepscope.formats.registry import built_in_formats
from stepscope.markdown import replace_section

HEADING = "## What is read"
_INTRODUCTION = (
    "This table is generated from the formats: `python -m stepscope.formats.page docs/formats.md`."
)


def render_table() -> str:
    """The section, with a row for each format."""
    head = ["| format | written by | versions | how it is verified |", "|---|---|---|---|"]
    rows = [
        f"| `{each.name}` | {each.written_by} | {each.versions} | {each.verified} |"
        for each in built_in_formats()
    ]
    return "\n".join([HEADING, "", _INTRODUCTION, "", *head, *rows, ""])


def update(page: str) -> str:
    """The page with this table instead of the one it has."""
    return replace_section(page, HEADING, render_table())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(update(path.read_text("utf-8")), "utf-8")
