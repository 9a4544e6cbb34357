"""The account: one bar of a step, and the same for each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from stepscope import units
from stepscope.reports.figures.figure import WIDTH, Figure
from stepscope.reports.figures.markup import Markup, join, lines, tag
from stepscope.reports.model.report import Report, StepRow
from stepscope.reports.wording.parts import PARTS, part
from stepscope.reports.wording.summary import basis, in_order, own_rows, own_steps
from stepscope.reports.wording.values import share

RANKS_DRAWN = 64
_LABEL = 90
_BAR = 18
_ROW = 24


def account(report: Report) -> Figure | None:
    """A step as one bar, cut into the parts of the account."""
    if not report.breakdown:
        return None
    rows = in_order(report.breakdown)
    steps = own_steps(report)
    pieces = {row.part: row.ns / steps for row in rows}
    total = sum(pieces.values())
    title = (
        f"A step of {units.duration(total)}"
        if report.steps.rows and report.steps.source != "whole"
        else f"The recording of {units.duration(total)}"
    )
    legend = tuple((f"p-{row.part}", f"{part(row.part).title} {share(row.share)}") for row in rows)
    return Figure("account", title, 44, bar(pieces, total, 0, 4, WIDTH, 36), legend, basis(report))


def ranks(report: Report) -> Figure | None:
    """The mean step of each rank, one bar each."""
    means = {rank: mean for rank in report.profile.ranks if (mean := mean_parts(own_rows(report, rank)))}
    if len(means) < 2:
        return None
    drawn = dict(list(means.items())[:RANKS_DRAWN])
    longest = max(sum(mean.values()) for mean in drawn.values())
    body = []
    for number, (rank, mean) in enumerate(drawn.items()):
        y = 4 + number * _ROW
        body.append(tag("text", f"rank {rank}", x=float(_LABEL - 10), y=float(y + 13), class_="tick end"))
        body.append(bar(mean, longest, _LABEL, y, WIDTH - _LABEL, _BAR))
    note = (
        f"the first {len(drawn)} of {len(means)} ranks"
        if len(drawn) < len(means)
        else "mean step of each rank"
    )
    return Figure("ranks", "Ranks", 8 + _ROW * len(drawn), join(body), part_legend(drawn.values()), note)


def bar(pieces: Mapping[str, float], total: float, x: float, y: float, width: float, height: float) -> Markup:
    """The pieces side by side; `total` fills the width."""
    drawn = []
    for name in in_part_order(pieces):
        length = width * pieces[name] / (total or 1)
        words = f"{part(name).title}: {units.duration(pieces[name])}, {share(pieces[name] / (sum(pieces.values()) or 1))}"
        tip = tag("title", lines(words, part(name).meaning))
        drawn.append(
            tag("rect", tip, x=float(x), y=float(y), width=length, height=float(height), class_=f"p-{name}")
        )
        x += length
    return join(drawn)


def bar_titles(pieces: Mapping[str, float]) -> list[str]:
    """The pieces in words, a line each, the longest first."""
    total = sum(pieces.values()) or 1
    ordered = sorted(pieces.items(), key=lambda item: -item[1])
    return [f"{part(name).title} {units.duration(ns)}, {share(ns / total)}" for name, ns in ordered]


def in_part_order(names: Iterable[str]) -> list[str]:
    """In the order of the account, so that colours are in the same places everywhere."""
    order = list(PARTS)
    return sorted(names, key=lambda name: order.index(name) if name in PARTS else len(order))


def mean_parts(rows: list[StepRow]) -> dict[str, float]:
    """ns of each part in the mean of the steps."""
    summed: Counter[str] = Counter()
    for row in rows:
        summed.update(row.parts)
    return {name: ns / len(rows) for name, ns in summed.items()}


def part_legend(accounts: Iterable[Mapping[str, float]]) -> tuple[tuple[str, str], ...]:
    """The parts that occur."""
    found = {name for each in accounts for name in each}
    return tuple((f"p-{name}", part(name).title) for name in in_part_order(found))
