"""A diff as one web page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.diffs.data.model import Diff, FindingChange
from stepscope.diffs.render.cells import (
    Listing,
    about,
    cells,
    finding_words,
    line_figures,
    listings,
    title_of,
    why_title,
)
from stepscope.diffs.render.flame_svg import flame_svg
from stepscope.reports.figures.markup import Markup, join, tag
from stepscope.reports.figures.style import asset, content_style, page_style
from stepscope.reports.render.html import policy, theme_button

ROWS = 100
_STYLE = """
.stepscope td.more{color:var(--error)}.stepscope td.less{color:var(--good)}
.stepscope tr.chance td{color:var(--faint)}
.stepscope .verdict{font-size:1.15rem;font-weight:600}.stepscope ol.why li{margin:.4em 0}
.stepscope ol.why b{margin-left:.6em}.stepscope ol.why small{color:var(--faint);margin-left:.6em}
.stepscope svg.flame{width:100%;height:auto;font:11px system-ui,sans-serif}
.stepscope svg.flame text{fill:#1b1f26;pointer-events:none}
"""


def as_html(found: Diff, *, limit: int = ROWS) -> str:
    """The verdict, what explains it, a differential flame graph, and tables."""
    script = asset("page.js")
    title = f"{found.a.name or found.a.path} against {found.b.name or found.b.path}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(page_style() + _STYLE)),
    )
    body = tag(
        "body",
        tag("header", tag("div", tag("h1", title), _runs(found))),
        tag("nav", tag("div", theme_button())),
        tag(
            "main",
            list(_sections(found, limit)),
            tag("footer", f"{found.schema} · times are per step and rank"),
        ),
        tag("div", id="tip"),
        tag("script", Markup(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en', class_='stepscope')}\n"


def fragment(found: Diff) -> str:
    """A piece of a page, for notebooks."""
    content = [tag("style", Markup(content_style() + _STYLE)), _runs(found), list(_words(found))]
    return tag("div", join(content), class_="stepscope piece")


def _runs(found: Diff) -> Markup:
    runs = (("A", found.a), ("B", found.b))
    return tag(
        "p",
        [tag("span", f"{letter}: {run.path} ({about(run)})") for letter, run in runs],
        class_="sub",
    )


def _sections(found: Diff, limit: int) -> Iterator[Markup]:
    yield tag("section", list(_words(found)))
    drawn = flame_svg(found.flame)
    if drawn is not None:
        yield tag("section", tag("h2", f"Differential flame graph, {found.flame.measure} time"), drawn)
    for listing in listings(found, limit):
        if listing.rows:
            yield tag("section", tag("h2", listing.title.capitalize()), _table(listing), id=listing.name)


def _words(found: Diff) -> Iterator[Markup]:
    yield tag("p", found.verdict, class_="verdict")
    yield from (tag("p", remark, class_="problem warning") for remark in found.not_comparable)
    if found.lines:
        items = []
        for line in found.lines:
            figure, of_change = line_figures(line)
            items.append(
                tag(
                    "li",
                    line.title,
                    tag("b", figure),
                    tag("small", " · ".join(filter(None, [of_change, line.detail]))),
                )
            )
        yield tag("h2", why_title(found).capitalize())
        yield tag("ol", items, class_="why")
    yield from _findings("Findings gained", found.gained)
    yield from _findings("Findings lost", found.lost)
    yield from _findings("Findings that grew or shrank", found.kept)


def _findings(title: str, changes: list[FindingChange]) -> Iterator[Markup]:
    kept = [change for change in changes if change.significant]
    if kept:
        yield tag("h3", title)
        yield tag("ul", [tag("li", finding_words(change)) for change in kept])


def _table(listing: Listing) -> Markup:
    titles = ("", "A", "B", "difference", "relative", "± by chance")
    head = tag("tr", [tag("th", each, class_="n" if number else None) for number, each in enumerate(titles)])
    body = []
    for row in listing.rows:
        values = (row.a, row.b, row.difference, row.relative, row.noise)
        colour = (" more" if row.difference > 0 else " less") if row.significant else ""
        figures = [
            tag(
                "td",
                words,
                class_="n" + (colour if place == 2 else ""),
                data_v="" if value is None else repr(value),
            )
            for place, (words, value) in enumerate(zip(cells(row), values, strict=True))
        ]
        name = tag("td", title_of(row, listing.name), class_="name", title=row.name)
        body.append(tag("tr", name, figures, class_=None if row.significant else "chance"))
    cut = f"{len(listing.rows):,} of {listing.total:,} rows" if listing.total > len(listing.rows) else ""
    return tag(
        "div",
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="table"),
        tag("p", cut, class_="cut") if cut else None,
        class_="of",
    )
