"""A diff as one web page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.diffs.data.model import Diff, Line, Row
from stepscope.diffs.render.cells import (
    HEAD,
    LEGEND,
    Listing,
    describe_finding,
    describe_run,
    describe_subject,
    format_cells,
    format_line,
    list_finding_groups,
    list_tables,
    title_lines,
)
from stepscope.diffs.render.flame_svg import flame_svg
from stepscope.registers.policy.diffs import DIFF_HTML_ROWS
from stepscope.reports.figures.markup import Markup, join, tag
from stepscope.reports.figures.style import asset, content_style, page_style
from stepscope.reports.render.html import policy, theme_button

_STYLE = """
.stepscope td.more{color:var(--error)}.stepscope td.less{color:var(--good)}
.stepscope tr.noise td{color:var(--faint)}
.stepscope .verdict{font-size:1.15rem;font-weight:600}.stepscope ol.why li{margin:.4em 0}
.stepscope ol.why b{margin-left:.6em}.stepscope ol.why small{color:var(--faint);margin-left:.6em}
.stepscope svg.flame{width:100%;height:auto;font:11px system-ui,sans-serif}
.stepscope svg.flame text{fill:#1b1f26;pointer-events:none}
"""


def as_html(diff: Diff, *, limit: int = DIFF_HTML_ROWS) -> str:
    """The verdict, what explains it, a differential flame graph, and tables."""
    script = asset("page.js")
    title = f"{diff.a.name or diff.a.path} against {diff.b.name or diff.b.path}"
    body = tag(
        "body",
        tag("header", tag("div", tag("h1", title), _render_runs(diff))),
        tag("nav", tag("div", theme_button())),
        tag(
            "main",
            list(_render_sections(diff, limit)),
            tag("footer", f"{diff.schema} · {LEGEND}"),
        ),
        tag("div", id="tip"),
        tag("script", Markup(script)),
    )
    page = tag("html", _render_head(title, script), body, lang="en", class_="stepscope")
    return f"<!doctype html>\n{page}\n"


def _render_head(title: str, script: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(page_style() + _STYLE)),
    )


def fragment(diff: Diff) -> str:
    """A piece of a page, for notebooks."""
    content = [
        tag("style", Markup(content_style() + _STYLE)),
        _render_runs(diff),
        list(_render_summary(diff)),
    ]
    return tag("div", join(content), class_="stepscope piece")


def _render_runs(diff: Diff) -> Markup:
    runs = (("A", diff.a), ("B", diff.b))
    return tag(
        "p",
        [tag("span", f"{letter}: {run.path} ({describe_run(run)})") for letter, run in runs],
        class_="sub",
    )


def _render_sections(diff: Diff, limit: int) -> Iterator[Markup]:
    yield tag("section", list(_render_summary(diff)))
    drawing = flame_svg(diff.flame)
    if drawing is not None:
        yield tag("section", tag("h2", f"Differential flame graph, {diff.flame.measure} time"), drawing)
    for listing in list_tables(diff, limit):
        yield tag("section", tag("h2", listing.title.capitalize()), _render_table(listing), id=listing.name)


def _render_summary(diff: Diff) -> Iterator[Markup]:
    yield tag("p", diff.verdict, class_="verdict")
    yield from (tag("p", caveat, class_="problem warning") for caveat in diff.not_comparable)
    if diff.lines:
        yield tag("h2", title_lines(diff).capitalize())
        yield tag("ol", [_render_line(line) for line in diff.lines], class_="why")
    for group in list_finding_groups(diff):
        yield tag("h3", group.title.capitalize())
        yield tag("ul", [tag("li", describe_finding(change)) for change in group.changes])


def _render_line(line: Line) -> Markup:
    figure, of_change = format_line(line)
    more = " · ".join(filter(None, [of_change, line.detail]))
    return tag("li", line.title, tag("b", figure), tag("small", more))


def _render_table(listing: Listing) -> Markup:
    head = tag("tr", [tag("th", each, class_="n" if number else None) for number, each in enumerate(HEAD)])
    body = [_render_row(row, listing.name) for row in listing.rows]
    cut = f"{len(listing.rows):,} of {listing.total:,} rows" if listing.total > len(listing.rows) else ""
    return tag(
        "div",
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="table"),
        tag("p", cut, class_="cut") if cut else None,
        class_="of",
    )


def _render_row(row: Row, table: str) -> Markup:
    values = (row.a, row.b, row.difference, row.relative, row.noise)
    colour = (" more" if row.difference > 0 else " less") if row.significant else ""
    figures = [
        tag(
            "td",
            words,
            class_="n" + (colour if place == 2 else ""),
            data_v="" if value is None else repr(value),
        )
        for place, (words, value) in enumerate(zip(format_cells(row), values, strict=True))
    ]
    name = tag("td", describe_subject(row, table), class_="name", title=row.name)
    return tag("tr", name, figures, class_=None if row.significant else "noise")
