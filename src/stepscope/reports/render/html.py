"""The report as one web page that needs nothing else: no network, no other file, and no script to be read."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterator

from stepscope import units
from stepscope.names import short_name
from stepscope.reports.figures import FIGURES
from stepscope.reports.figures.markup import Content, Markup, join, tag
from stepscope.reports.figures.style import asset, content_style, page_style
from stepscope.reports.model.report import BreakdownRow, Finding, Problem, Report
from stepscope.reports.render.html_tables import table_html
from stepscope.reports.tables.tables import ORDER, TITLES, names_table, tables_of
from stepscope.reports.wording.basis import step_label
from stepscope.reports.wording.devices import charged_device
from stepscope.reports.wording.facts import VERDICT, facts_of, is_sentence
from stepscope.reports.wording.headline import devices, figures, title
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.sentence import opening
from stepscope.reports.wording.summary import (
    about_names,
    evidence,
    in_order,
    longest_names,
    own_steps,
    placed,
    saved_time,
    speedup,
)
from stepscope.reports.wording.values import framework, moment, share

ROWS = 200
_FIGURES = {"breakdown": ("account", "ranks"), "steps": ("steps",), "precision": ("precision",), "device": ("device",), "memory": ("memory",)}  # fmt: skip


_OPEN_FROM = 0.05  # the largest idle part is open from this share on
# Sections whose figures say all that their tables would.
_DRAWN = ("breakdown", "precision")


def as_html(report: Report, *, sections: Collection[str] | None = None, limit: int = ROWS) -> str:
    """The whole report, or some of its sections; tables have at most `limit` rows, 0 for all."""
    found = [
        (name, body)
        for name in ORDER
        if sections is None or name in sections
        for body in _body(report, name, limit)
    ]
    script = asset("page.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title(report)),
        tag("style", Markup(page_style())),
    )
    body = tag(
        "body",
        tag("header", tag("div", _header(report))),
        _nav([name for name, _ in found]),
        tag("main", [_section(name, content) for name, content in found], _footer(report)),
        tag("div", id="tip"),
        tag("script", Markup(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en', class_='stepscope')}\n"


def policy(script: str) -> str:
    """Only our script may run, and nothing may be fetched: names in a profile are not to be trusted."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _header(report: Report) -> list[Markup]:
    profile = report.profile
    when = moment(profile.recorded_unix_ns) if profile.recorded_unix_ns is not None else None
    about = [
        framework(profile.framework), devices(report), *figures(report)[:1], ", ".join(profile.hosts[:3]), when,
        f"{profile.events:,} events",
    ]  # fmt: skip
    cards = [
        tag("div", tag("b", value), tag("span", label), class_="card") for label, value in _cards(report)
    ]
    return [
        tag("h1", profile.name or profile.path),
        tag("p", [tag("span", each) for each in about if each], class_="sub"),
        tag("p", opening(report), class_="verdict"),
        tag("div", cards, class_="cards"),
    ]


def _cards(report: Report) -> Iterator[tuple[str, str]]:
    """The figures that people look for first."""
    steps = report.steps
    if steps.basis_ns is not None:
        yield step_label(steps), units.duration(steps.basis_ns)
    busy = sum(row.share for row in report.breakdown if part(row.part).is_busy)
    if report.breakdown and any(row.part == "compute" for row in report.breakdown):
        yield f"{charged_device(report) or 'device'} busy", share(busy)
    idle = [row for row in in_order(report.breakdown) if not part(row.part).is_busy]
    if idle and idle[0].share >= 0.01:
        why = idle[0].part
        label = "unexplained" if why == "unexplained" else f"idle: {part(why).title}"
        yield label, share(idle[0].share)
    if report.device.mfu is not None:
        yield "model FLOPs utilisation (MFU)", share(report.device.mfu)
    if report.device.mfu_own_precision is not None:
        yield "MFU at the peak of the precision in use", share(report.device.mfu_own_precision)
    peaks = [
        found.peak_bytes for found in report.memory.devices if found.device_kind != "cpu" and found.peak_bytes
    ]
    if peaks:
        yield "peak memory of a device", units.size(max(peaks))
    if report.findings and report.findings[0].speedup.mid > 1:
        yield "potential speed-up (top finding)", speedup(report.findings[0].speedup)


def _nav(names: list[str]) -> Markup:
    links = tag("p", [tag("a", TITLES[name], href=f"#{name}") for name in names])
    return tag("nav", tag("div", links, theme_button()))


def theme_button() -> Markup:
    """Light or dark; the script of the page shows it."""
    return tag("button", "light / dark", id="theme", type="button", hidden=True)


def _section(name: str, content: Content) -> Markup:
    return tag("section", tag("h2", TITLES[name]), content, id=name)


def _footer(report: Report) -> Markup:
    profile = report.profile
    versions = ", ".join(f"{name} {value}" for name, value in profile.versions.items())
    pieces = [f"{report.schema} of {profile.path}", versions, "Times are of profiled steps."]
    return tag("footer", " · ".join(piece for piece in pieces if piece))


def _body(report: Report, name: str, limit: int) -> Iterator[Content]:
    """What the section shows; nothing where there is nothing to show."""
    content = list(_WORDS.get(name, _figures_and_tables)(report, name, limit))
    if content:
        yield content


def _problems(report: Report, _: str, limit: int) -> Iterator[Markup]:
    notes = [_problem(problem) for problem in report.problems if problem.severity == "info"]
    serious = [_problem(problem) for problem in report.problems if problem.severity != "info"]
    yield from serious or [tag("p", "Nothing is wrong with the capture.")]
    if notes:
        yield tag("details", tag("summary", f"{len(notes)} note{'s' if len(notes) > 1 else ''}"), notes)


def _problem(problem: Problem) -> Markup:
    rank = f" (rank {problem.rank})" if problem.rank is not None else ""
    return tag(
        "div",
        tag("h3", tag("em", problem.severity), f": {problem.title}{rank}"),
        tag("p", problem.detail),
        tag("p", problem.cause, class_="cause") if problem.cause else None,
        tag("p", problem.fix, class_="fix") if problem.fix else None,
        class_=f"problem {problem.severity}",
    )


def _findings(report: Report, _: str, limit: int) -> Iterator[Markup]:
    yield from (_finding(report, number, finding) for number, finding in enumerate(report.findings, 1))


def _finding(report: Report, number: int, finding: Finding) -> Markup:
    figures_behind = [(tag("dt", label), tag("dd", words)) for label, words in evidence(finding)]
    words = tag(
        "div",
        tag("h3", finding.title, tag("code", finding.code)),
        tag("p", finding.detail),
        tag("p", finding.fix, class_="fix") if finding.fix else None,
        tag("details", tag("summary", "evidence"), tag("dl", figures_behind)) if figures_behind else None,
    )
    return tag("div", tag("b", str(number)), words, _gain(report, finding), class_="finding")


def _gain(report: Report, finding: Finding) -> Markup | None:
    if finding.saves_ns_per_step <= 0:
        return None
    said = tag("b", speedup(finding.speedup)), tag("span", saved_time(report, finding))
    return tag("div", *said, class_="gain")


def _figures_and_tables(report: Report, name: str, limit: int) -> Iterator[Markup]:
    facts = facts_of(report, name)
    yield from (tag("p", value) for label, value in facts if label == VERDICT)
    drawn = [found for each in _figure_names(report, name) if (found := FIGURES[each](report)) is not None]
    short = [(label, value) for label, value in facts if not is_sentence(value)]
    long = [(label, value) for label, value in facts if is_sentence(value) and label != VERDICT]
    if short:
        yield tag(
            "dl", [tag("div", tag("dt", label), tag("dd", value)) for label, value in short], class_="facts"
        )
    yield from (tag("p", f"{label}: {value}") for label, value in long)
    yield from (found.html() for found in drawn)
    if name == "breakdown" and report.breakdown:
        yield _account(report)
    if name not in _DRAWN:
        for table in tables_of(report, name):
            yield table_html(table.head(limit), table.title if table.title != name else "")


def _account(report: Report) -> Markup:
    """All parts, busy ones first; the one that costs most is open."""
    rows = in_order(report.breakdown)
    idle = [row for row in rows if not part(row.part).is_busy and row.share >= _OPEN_FROM]
    worst = max(idle, key=lambda row: row.ns, default=None)
    return tag("div", [_account_part(row, own_steps(report), row is worst) for row in rows], class_="parts")


def _account_part(row: BreakdownRow, steps: int, is_open: bool) -> Markup:
    about = part(row.part)
    names = ", ".join(placed(short_name(each.name), each.place) for each in longest_names(row))
    line = tag(
        "summary",
        tag("i", class_=f"swatch p-{row.part}"),
        tag("b", about.title),
        tag("span", share(row.share), class_="n"),
        tag("span", units.duration(row.ns / steps), class_="n"),
        tag("span", tag("i", class_=f"p-{row.part}", style=f"width:{100 * row.share:.2f}%"), class_="gauge"),
        tag("span", names, class_="names"),
    )
    note = f"{about.meaning} {about_names(row)}"
    return tag("details", line, tag("p", note), table_html(names_table(row), ""), open=is_open)


def _figure_names(report: Report, section: str) -> tuple[str, ...]:
    """One step of each of several ranks is already drawn as bars, side by side."""
    is_drawn = section == "steps" and report.steps.count == 1 and len(report.profile.ranks) > 1
    return () if is_drawn else _FIGURES.get(section, ())


_WORDS: dict[str, Callable[[Report, str, int], Iterator[Markup]]] = {
    "problems": _problems,
    "findings": _findings,
}


def fragment(report: Report) -> str:
    """A piece of a page, for notebooks: what to know first, without a script."""
    drawn = [FIGURES[name](report) for name in ("account", "steps")]
    content = [
        tag("style", Markup(content_style())),
        _header(report),
        tag("section", [_problem(problem) for problem in report.problems if problem.severity != "info"]),
        tag(
            "section",
            [_finding(report, number, finding) for number, finding in enumerate(report.findings[:5], 1)],
        ),
        [found.html() for found in drawn if found is not None],
    ]
    return tag("div", join(content), class_="stepscope piece")
