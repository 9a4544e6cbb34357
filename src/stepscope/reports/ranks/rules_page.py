"""The table of findings in docs/report/findings.md, made from the rules: python -m stepscope.reports.ranks.rules_page FILE"""

from __future__ import annotations

import sys
from pathlib import Path

from stepscope.markdown import replace_section
from stepscope.reports.ranks.rules import all_rules

HEADING = "## Codes"
_INTRODUCTION = (
    "Rules claim time in this order: each finding owns what those above it leave. *At best* marks what only the high end of the promise\n"
    "assumes, *at worst* what the low end assumes. This table is generated from the rules (`analysis/findings/rules`):\n"
    "`python -m stepscope.reports.ranks.rules_page docs/report/findings.md`."
)


def render_table() -> str:
    """The section about codes."""
    rows = [
        f"| `{rule.code}` | {_note(rule.class_)}{rule.owns} | {rule.change} |"
        for rule in all_rules(with_plugins=False)
    ]
    head = ["| code | what it owns | the change that is replayed |", "|---|---|---|"]
    return "\n".join([HEADING, "", _INTRODUCTION, "", *head, *rows, ""])


def _note(class_: str) -> str:
    return "" if class_ == "time" else f"({class_}) "


def update(page: str) -> str:
    """The page with this table instead of the one it has."""
    return replace_section(page, HEADING, render_table())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(update(path.read_text("utf-8")), "utf-8")
