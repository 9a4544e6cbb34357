"""A diff in words: the cells of its tables, the same in every rendering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope import units
from stepscope.diffs.data.model import Diff, FindingChange, Line, Row, Rows, Run
from stepscope.diffs.verdict import signed_share
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.values import UNKNOWN, framework, share, short_name

HEAD = ("", "A", "B", "difference", "", "± by chance")
SURE = "●"
LONGEST_SHAPES = 60


@dataclass(frozen=True)
class Listing:
    """A table: rows of a name and its figures, and which of them are no accident."""

    name: str
    title: str
    rows: Sequence[Row]
    total: int
    note: str = ""


def listings(found: Diff, limit: int) -> Iterator[Listing]:
    """All tables that have rows; of the long ones the first `limit` rows, 0 for all."""
    yield Listing("figures", "figures", found.figures, len(found.figures))
    yield Listing("parts", "parts of a step", found.parts, len(found.parts))
    yield _capped("names", "what the device waited for", found.names, limit)
    yield _capped("ops", f"ops by {found.ops_measure} time", found.ops, limit)
    yield _capped("kernels", "kernels", found.kernels, limit)
    yield Listing("precision", "matrix products by precision", found.precision, len(found.precision))
    yield _capped("collectives", "collectives", found.collectives, limit)
    yield Listing("memory", "peak memory", found.memory, len(found.memory))


def _capped(name: str, title: str, rows: Rows, limit: int) -> Listing:
    kept = rows.rows[:limit] if limit else rows.rows
    return Listing(name, title, kept, rows.total)


def amount(value: float | None, unit: str) -> str:
    """A figure with its unit."""
    if value is None:
        return UNKNOWN
    if unit == "ns":
        return units.duration(value)
    if unit == "bytes":
        return units.size(value)
    return share(value) if unit == "share" else f"{value:,.6g}"


def change(value: float, unit: str) -> str:
    """A difference with its sign; of shares, in points."""
    sign = "−" if value < 0 else "+" if value > 0 else "±"
    if unit == "share":
        return f"{sign}{abs(100 * value):.1f} points"
    return f"{sign}{amount(abs(value), unit)}"


def cells(row: Row) -> tuple[str, str, str, str, str]:
    """A, B, difference, relative, noise."""
    relative = signed_share(row.relative) if row.relative is not None else ""
    if row.a is None or row.b is None:
        relative = "only in B" if row.a is None else "only in A"
    noise = amount(row.noise, row.unit) if row.noise is not None else ""
    return amount(row.a, row.unit), amount(row.b, row.unit), change(row.difference, row.unit), relative, noise


def title_of(row: Row, table: str) -> str:
    """What the row is about."""
    if table == "parts":
        return part(row.name).title
    name = short_name(row.name)
    if table == "figures" and row.note:
        return f"{name} ({row.note})"
    if table == "names" and row.part:
        return f"{part(row.part).title}: {name}"
    if table == "ops":
        shapes = clipped(row.shapes, LONGEST_SHAPES) if row.shapes else ""
        return "  ".join(filter(None, [name, row.scope or "", shapes]))
    return name


def clipped(text: str, longest: int) -> str:
    """Not longer than that."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def why_title(found: Diff) -> str:
    """What the lines are: reasons for a change of the step, or what differs though the step does not for sure."""
    changed = found.step.significant or (found.tail is not None and found.tail.significant)
    return "what explains it" if changed else "what differs all the same"


def line_figures(line: Line) -> tuple[str, str]:
    """The difference, and its share of the step's change."""
    relative = f" ({signed_share(line.relative)})" if line.relative is not None else ""
    if line.unit == "calls":
        return f"{line.difference:+g} calls", ""
    of_change = f"{100 * line.share:.0f} % of the change" if line.share is not None and line.share > 0 else ""
    return change(line.difference, line.unit) + relative, of_change


def about(run: Run) -> str:
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


def finding_words(changed: FindingChange) -> str:
    """A finding with what it is worth."""
    if changed.a_saves_ns is not None and changed.b_saves_ns is not None:
        worth = f"worth {units.duration(changed.a_saves_ns)} a step in A, {units.duration(changed.b_saves_ns)} in B"
        return f"{changed.title} ({changed.code}, {worth})"
    saves = changed.b_saves_ns if changed.b_saves_ns is not None else changed.a_saves_ns
    worth = f", worth {units.duration(saves)} a step" if saves else ""
    return f"{changed.title} ({changed.code}{worth})"
