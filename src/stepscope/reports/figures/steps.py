"""Step after step: columns cut into the parts of the account, a panel for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope import units
from stepscope.reports.figures.account import bar_titles, in_part_order, mean_parts, part_legend
from stepscope.reports.figures.axes import BOTTOM, LEFT, RIGHT, TOP, Frame, duration_words, grid, ticks, under
from stepscope.reports.figures.figure import WIDTH, Figure
from stepscope.reports.figures.markup import Markup, join, lines, tag
from stepscope.reports.model.report import Report, StepRow
from stepscope.reports.wording.summary import own_rows

PANELS = 8
COLUMNS = 240
WIDEST = 90


@dataclass(frozen=True)
class Column:
    """One step, or the mean of several where there are more steps than columns."""

    label: str
    ns: float
    parts: dict[str, float]
    is_outlier: bool
    is_partial: bool


def steps(report: Report) -> Figure | None:
    """All steps of each rank's critical device."""
    panels = [(rank, rows) for rank in report.profile.ranks if (rows := own_rows(report, rank))]
    if not panels:
        return None
    drawn = panels[:PANELS]
    height = 200 if len(drawn) == 1 else 110
    columns = [columns_of(rows) for _, rows in drawn]
    top = max(column.ns for panel in columns for column in panel)
    body = [
        _panel(report, panel, number * (height + TOP + BOTTOM) + TOP, height, top, f"rank {rank}" if len(panels) > 1 else "")
        for number, ((rank, _), panel) in enumerate(zip(drawn, columns, strict=True))
    ]  # fmt: skip
    legend = part_legend(column.parts for panel in columns for column in panel)
    return Figure(
        "steps", "Steps", len(drawn) * (height + TOP + BOTTOM), join(body), legend, _note(panels, drawn)
    )


def columns_of(rows: Sequence[StepRow]) -> list[Column]:
    """A column per step; of more steps than fit, neighbours are put together."""
    size = -(-len(rows) // COLUMNS)
    return [_column(rows[i : i + size]) for i in range(0, len(rows), size)]


def _column(rows: Sequence[StepRow]) -> Column:
    label = f"step {rows[0].step}" if len(rows) == 1 else f"steps {rows[0].step}–{rows[-1].step}, mean"
    duration = sum(row.duration_ns for row in rows) / len(rows)
    return Column(
        label,
        duration,
        mean_parts(list(rows)),
        any(row.outlier for row in rows),
        all(row.partial for row in rows),
    )


def _note(panels: Sequence[object], drawn: Sequence[object]) -> str:
    return (
        f"the first {len(drawn)} of {len(panels)} ranks"
        if len(drawn) < len(panels)
        else "hover for the parts of a step"
    )


def _panel(report: Report, columns: list[Column], y: float, height: float, top: float, label: str) -> Markup:
    frame = Frame(y, height, 0, len(columns), top)
    width = (WIDTH - LEFT - RIGHT) / len(columns)
    gap = min(3.0, width * 0.15)
    drawn = [grid(frame, ticks(top, 4), duration_words(top))]
    for number, column in enumerate(columns):
        thick = min(width - gap, WIDEST)
        drawn.append(_stack(column, frame, frame.across(number + 0.5) - thick / 2, thick))
    median = report.steps.median_ns
    if median is not None:
        at = frame.up(median)
        drawn.append(tag("line", tag("title", f"median {units.duration(median)}"), x1=float(LEFT), x2=float(WIDTH - RIGHT), y1=at, y2=at, class_="median"))  # fmt: skip
    every = max(1, len(columns) // 12)
    marks = [number + 0.5 for number in range(0, len(columns), every)]
    drawn.append(under(frame, marks, lambda mark: columns[int(mark)].label.split()[1].split("–")[0]))
    if label:
        drawn.append(tag("text", label, x=float(LEFT + 4), y=y + 12, class_="panel"))
    return join(drawn)


def _stack(column: Column, frame: Frame, x: float, width: float) -> Markup:
    pieces = []
    reached = 0.0
    for name in in_part_order(column.parts):
        low, high = frame.up(reached), frame.up(reached + column.parts[name])
        pieces.append(tag("rect", x=x, y=high, width=width, height=low - high, class_=f"p-{name}"))
        reached += column.parts[name]
    words = f"{column.label}: {units.duration(column.ns)}" + (" (outlier)" if column.is_outlier else "")
    words += " (partial)" if column.is_partial else ""
    tip = tag("title", lines(words, *bar_titles(column.parts)))
    mark = (
        tag("path", d=f"M{x + width / 2:.1f} {frame.up(column.ns) - 3:.1f} l-4 -6 h8 z", class_="outlier")
        if column.is_outlier
        else None
    )
    # A clear rectangle over the column gives small pieces the same tip as large ones.
    cover = tag("rect", tip, x=x, y=frame.y, width=width, height=frame.height, class_="cover")
    return tag("g", pieces, mark, cover, class_="partial" if column.is_partial else None)
