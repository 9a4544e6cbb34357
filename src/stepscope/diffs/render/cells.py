"""The words of a diff: titles, cells of tables and headings, the same in every rendering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope import units
from stepscope.diffs.data.model import Diff, FindingChange, Line, Row, Rows, Run
from stepscope.diffs.explain.wording import format_share_change
from stepscope.names import short_name
from stepscope.registers.policy.diffs import DIFF_LONGEST_SHAPES
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.values import UNKNOWN, framework, share

HEAD = ("", "A", "B", "difference", "relative", "± noise")
SIGNIFICANT = "●"
LEGEND = f"{SIGNIFICANT} significant. Times are per step and rank; ± noise is the 95 % margin."


@dataclass(frozen=True)
class Listing:
    """A table: rows of a name and its figures; of `total` rows, `significant` differ significantly."""

    name: str
    title: str
    rows: Sequence[Row]
    total: int
    significant: int


@dataclass(frozen=True)
class FindingGroup:
    """Findings that changed in one way; `is_worse` is None where that depends."""

    title: str
    changes: Sequence[FindingChange]
    is_worse: bool | None = None


def list_tables(diff: Diff, limit: int) -> Iterator[Listing]:
    """All tables that have rows; of the long ones the first `limit` rows, 0 for all."""
    tables: tuple[tuple[str, str, Rows | list[Row]], ...] = (
        ("figures", "figures", diff.figures),
        ("parts", "parts of a step", diff.parts),
        ("names", "what the device waited for", diff.names),
        ("ops", f"ops by {diff.ops_measure} time", diff.ops),
        ("kernels", "kernels", diff.kernels),
        ("precision", "matrix products by precision", diff.precision),
        ("collectives", "collectives", diff.collectives),
        ("memory", "peak memory", diff.memory),
    )
    for name, title, rows in tables:
        listing = (
            _cap_rows(name, title, rows, limit) if isinstance(rows, Rows) else _list_all(name, title, rows)
        )
        if listing.rows:
            yield listing


def _cap_rows(name: str, title: str, rows: Rows, limit: int) -> Listing:
    return Listing(name, title, rows.rows[:limit] if limit else rows.rows, rows.total, rows.significant)


def _list_all(name: str, title: str, rows: list[Row]) -> Listing:
    return Listing(name, title, rows, len(rows), sum(row.significant for row in rows))


def list_finding_groups(diff: Diff) -> Iterator[FindingGroup]:
    """Findings that changed significantly, by how they did."""
    groups = (
        FindingGroup("findings gained", diff.gained, True),
        FindingGroup("findings lost", diff.lost, False),
        FindingGroup("findings that grew or shrank", diff.kept),
    )
    for group in groups:
        significant = [change for change in group.changes if change.significant]
        if significant:
            yield FindingGroup(group.title, significant, group.is_worse)


def format_amount(value: float | None, unit: str) -> str:
    """A figure with its unit."""
    if value is None:
        return UNKNOWN
    if unit == "ns":
        return units.duration(value)
    if unit == "bytes":
        return units.size(value)
    return share(value) if unit == "share" else f"{value:,.6g}"


def format_change(value: float, unit: str) -> str:
    """A difference with its sign; of shares, in points."""
    sign = "−" if value < 0 else "+" if value > 0 else "±"
    if unit == "share":
        return f"{sign}{abs(100 * value):.1f} points"
    return f"{sign}{format_amount(abs(value), unit)}"


def format_cells(row: Row) -> tuple[str, str, str, str, str]:
    """A, B, difference, relative, noise."""
    relative = format_share_change(row.relative) if row.relative is not None else ""
    if row.a is None or row.b is None:
        relative = "only in B" if row.a is None else "only in A"
    noise = format_amount(row.noise, row.unit) if row.noise is not None else ""
    return (
        format_amount(row.a, row.unit),
        format_amount(row.b, row.unit),
        format_change(row.difference, row.unit),
        relative,
        noise,
    )


def describe_subject(row: Row, table: str) -> str:
    """What the row of a table is about."""
    if table == "parts":
        return part(row.name).title
    name = short_name(row.name)
    if table == "figures" and row.note:
        return f"{name} ({row.note})"
    if table == "names" and row.part:
        around = " around" if row.part == "unexplained" else ":"
        return f"{part(row.part).title}{around} {name}"
    if table == "ops":
        shapes = clip(row.shapes, DIFF_LONGEST_SHAPES) if row.shapes else ""
        return "  ".join(filter(None, [name, row.scope or "", shapes]))
    return name


def clip(text: str, longest: int) -> str:
    """The text, cut where it is longer than that."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def title_lines(diff: Diff) -> str:
    """What the lines are: reasons for a change of the step, or differences though the step did not change significantly."""
    return "what explains it" if _has_step_changed(diff) else "other differences"


def explain_no_lines(diff: Diff) -> str:
    """What is said in place of lines where there are none."""
    return (
        "No part of it changed significantly."
        if _has_step_changed(diff)
        else "Nothing differs significantly."
    )


def _has_step_changed(diff: Diff) -> bool:
    return diff.step.significant or (diff.tail is not None and diff.tail.significant)


def format_line(line: Line) -> tuple[str, str]:
    """The difference, and its share of the step's change."""
    relative = f" ({format_share_change(line.relative)})" if line.relative is not None else ""
    if line.unit == "calls":
        return f"{line.difference:+g} calls", ""
    of_change = f"{100 * line.share:.0f} % of the change" if line.share is not None and line.share > 0 else ""
    return format_change(line.difference, line.unit) + relative, of_change


def describe_run(run: Run) -> str:
    """A run in one line."""
    steps = f"{run.steps:,} step{'s' if run.steps != 1 else ''}" + (
        f" on {run.ranks:,} ranks" if run.ranks > 1 else ""
    )
    if len(run.paths) > 1:
        steps += f" in {len(run.paths)} recordings"
    devices = f"{len(run.devices)} × " if len(run.devices) > 1 else ""
    return " · ".join(
        filter(None, [framework(run.framework), devices + (run.devices[0] if run.devices else ""), steps])
    )


def describe_finding(changed: FindingChange) -> str:
    """A finding with what it is worth."""
    a, b = changed.a_saves_ns, changed.b_saves_ns
    if a is not None and b is not None:
        worth = f", worth {units.duration(a)} per step in A, {units.duration(b)} in B"
    else:
        saves = a if b is None else b
        worth = f", worth {units.duration(saves)} per step" if saves else ""
    return f"{changed.title} ({changed.code}{worth})"
