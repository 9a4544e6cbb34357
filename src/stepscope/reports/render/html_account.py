"""The account on the web page: a line per part, which opens to the names behind it."""

from __future__ import annotations

from stepscope import units
from stepscope.reports.figures.markup import Markup, tag
from stepscope.reports.model.report import BreakdownRow, Report
from stepscope.reports.render.html_tables import table_html
from stepscope.reports.tables.tables import names_table
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.summary import in_order, longest_names, own_steps
from stepscope.reports.wording.values import share, short_name

OPEN_FROM = 0.05  # the largest idle part is open from this share on


def account_html(report: Report) -> Markup:
    """All parts, busy ones first; the one that costs most is open."""
    rows = in_order(report.breakdown)
    idle = [row for row in rows if not part(row.part).is_busy and row.share >= OPEN_FROM]
    worst = max(idle, key=lambda row: row.ns, default=None)
    return tag("div", [_part(row, own_steps(report), row is worst) for row in rows], class_="parts")


def _part(row: BreakdownRow, steps: int, is_open: bool) -> Markup:
    about = part(row.part)
    names = ", ".join(short_name(each.name) for each in longest_names(row))
    line = tag(
        "summary",
        tag("i", class_=f"swatch p-{row.part}"),
        tag("b", about.title),
        tag("span", share(row.share), class_="n"),
        tag("span", units.duration(row.ns / steps), class_="n"),
        tag("span", tag("i", class_=f"p-{row.part}", style=f"width:{100 * row.share:.2f}%"), class_="gauge"),
        tag("span", names, class_="names"),
    )
    note = f"{about.meaning} {share(row.named_share)} of this time has a name."
    return tag("details", line, tag("p", note), table_html(names_table(row), ""), open=is_open)
