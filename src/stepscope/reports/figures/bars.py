"""Horizontal bars: what takes longest, and shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope import units
from stepscope.names import short_name
from stepscope.reports.figures.figure import WIDTH, Figure
from stepscope.reports.figures.markup import Markup, join, lines, tag
from stepscope.reports.model.report import Report
from stepscope.reports.wording.values import share

LONGEST = 12
_ROW = 24
_LABEL = 330
_VALUE = 80


def ops(report: Report) -> Figure | None:
    """The ops that take most device time, or host time where there is no device."""
    on_device = any(row.device_self_ns for row in report.ops.rows)
    rows = [(row.name, row.device_self_ns if on_device else row.host_self_ns) for row in report.ops.rows]
    return _longest(
        "ops", f"Ops by {'device' if on_device else 'host'} time of their own", rows, report.ops.total
    )


def kernels(report: Report) -> Figure | None:
    """The kernels that take longest."""
    rows = [(row.name, row.total_ns) for row in report.kernels.rows]
    return _longest("kernels", "Kernels by time", rows, report.kernels.total)


def collectives(report: Report) -> Figure | None:
    """Operations by the time in which nothing hides them."""
    rows = [(row.name, row.exposed_ns or 0) for row in report.collectives.rows]
    return _longest("collectives", "Communication that nothing hides", rows, len(rows))


def precision(report: Report) -> Figure | None:
    """One bar of device compute, cut by precision."""
    shares = {name: value for name, value in report.precision.shares.items() if value > 0}
    if not shares:
        return None
    pieces = []
    x = 0.0
    for name, value in shares.items():
        tip = tag("title", f"{name}: {share(value)} of device compute")
        pieces.append(tag("rect", tip, x=x, y=4.0, width=WIDTH * value, height=28.0, class_=f"q-{name}"))
        x += WIDTH * value
    legend = tuple((f"q-{name}", f"{name} {share(value)}") for name, value in shares.items())
    return Figure("precision", "Precision of device compute", 36, join(pieces), legend)


def _longest(name: str, title: str, rows: Sequence[tuple[str, int]], total: int) -> Figure | None:
    kept = sorted((row for row in rows if row[1] > 0), key=lambda row: -row[1])[:LONGEST]
    if not kept:
        return None
    top = kept[0][1]
    body = [_bar(label, ns, top, 4 + number * _ROW) for number, (label, ns) in enumerate(kept)]
    note = (
        f"the longest {len(kept)} of {max(total, len(rows)):,}" if max(total, len(rows)) > len(kept) else ""
    )
    return Figure(name, title, 8 + _ROW * len(kept), join(body), note=note)


def _bar(label: str, ns: int, top: int, y: int) -> Markup:
    width = max(1.0, (WIDTH - _LABEL - _VALUE) * ns / top)
    brief = short_name(label)
    brief = brief if len(brief) <= 46 else brief[:45] + "…"
    tip = tag("title", lines(label, units.duration(ns)))
    return tag(
        "g",
        tag("text", brief, x=float(_LABEL - 10), y=float(y + 14), class_="label end"),
        tag("rect", tip, x=float(_LABEL), y=float(y + 1), width=width, height=18.0, class_="p-compute"),
        tag("text", units.duration(ns), x=_LABEL + width + 6, y=float(y + 14), class_="tick"),
    )
