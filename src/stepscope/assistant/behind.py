"""The events behind a handle, for every command and tool that takes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.assistant.about import find_finding
from stepscope.assistant.handles import Handle, not_there, parse_handle
from stepscope.errors import StepscopeError
from stepscope.profiles.profile import Profile
from stepscope.reports.model.report import Report
from stepscope.server.evidence.found import Found, find_events
from stepscope.server.evidence.handle import Handle as Evidence
from stepscope.trace.part import part_of
from stepscope.trace.trace import Trace

# As the page calls them.
_KINDS = {
    "part": "account",
    "finding": "finding",
    "op": "op",
    "kernel": "kernel",
    "step": "step",
    "event": "event",
}


@dataclass(frozen=True)
class Behind:
    """The events on one rank, the worst first; `found` says what the weight is. `step` is the number of a handle of a step."""

    context: RankContext
    found: Found
    step: int | None = None

    @property
    def rank(self) -> int:
        """Where they are."""
        return self.context.rank

    @property
    def rows(self) -> pl.DataFrame:
        """event, weight, start_ns, end_ns, without the time that no event explains."""
        return self.found.rows.filter(pl.col("event").is_not_null())


def find_behind(profile: Profile, report: Report, wanted: str, rank: int | None = None) -> Behind:
    """What the handle means, on one rank: the given one, that of the finding, or the first."""
    asked = parse_handle(wanted)
    evidence, worst = _evidence(report, asked)
    chosen = rank if rank is not None else worst if worst in profile.ranks else profile.ranks[0]
    context = RankContext(chosen, profile.trace(chosen), Options(region=report.steps.region))
    _check_number(context, asked)
    step = int(asked.name) if asked.kind == "step" and asked.name.isdecimal() else None
    behind = Behind(context, find_events(evidence, _frames(context)), step)
    if behind.rows.is_empty():
        raise not_there(asked)
    return behind


def as_frame(behind: Behind) -> pl.DataFrame:
    """The events as a table, the worst first; the last column is what they are sorted by."""
    columns = ("id", "name", "kind", "step", "start_ns", "dur_ns")
    events = behind.context.trace.events.select(columns)[behind.rows["event"]]
    weight = behind.rows["weight"].alias(f"weight_{behind.found.unit}")
    return events.with_columns(weight, rank=pl.lit(behind.rank)).select("rank", *columns, weight.name)


def cut_step(behind: Behind) -> tuple[Trace, int | None]:
    """The trace of the step in which the handle costs most, and which step that is; without steps, the time of its worst event."""
    events = behind.context.trace.events
    start, end, step = _span(behind, events)
    finish = pl.col("start_ns") + pl.col("dur_ns")
    reach = (pl.col("start_ns") < end) & ((finish > start) | (pl.col("start_ns") >= start))
    ids = events.filter(reach)["id"].sort()
    return part_of(behind.context.trace, ids, start, end), step


def page_link(report: Report, wanted: str, run: str) -> str:
    """The part of the page's address that shows the events in the trace viewer."""
    evidence, rank = _evidence(report, parse_handle(wanted))
    named = {"run": run, "events": f"{evidence.kind}:{evidence.name}"}
    return f"#/trace?{urlencode(named if rank is None else {**named, 'rank': rank})}"


def _span(behind: Behind, events: pl.DataFrame) -> tuple[int, int, int | None]:
    if behind.found.span is not None:
        return (*behind.found.span, behind.step)
    rows = behind.rows.with_columns(step=events["step"].gather(behind.rows["event"]))
    by_step = rows.drop_nulls("step").group_by("step").agg(pl.col("weight").sum())
    if by_step.is_empty():
        worst = events.row(int(rows["event"][0]), named=True)
        return worst["start_ns"], worst["start_ns"] + max(1, worst["dur_ns"]), None
    step = by_step.sort("weight", "step", descending=[True, False])["step"][0]
    own = events.filter(pl.col("step") == step)
    return _least(own["start_ns"]), _most(own["start_ns"] + own["dur_ns"]), int(step)


def _least(times: pl.Series) -> int:
    return int(times.min())  # type: ignore[arg-type]


def _most(times: pl.Series) -> int:
    return int(times.max())  # type: ignore[arg-type]


def _evidence(report: Report, asked: Handle) -> tuple[Evidence, int | None]:
    """The handle of the page that means the same, and the rank on which it costs most."""
    if asked.kind not in _KINDS:
        raise StepscopeError(
            f"No events belong to a {asked.kind}.", fix=f"Kinds with events: {', '.join(_KINDS)}."
        )
    if asked.kind == "finding":
        finding = find_finding(report, asked)
        return Evidence("finding", finding.code, {}), finding.evidence.get("rank")
    name = asked.name
    if asked.kind in ("op", "kernel"):
        rows: list[Any] = [*report.ops.rows] if asked.kind == "op" else [*report.kernels.rows]
        name = next((row.name for row in rows if asked.means(row.name)), name)
    return Evidence(_KINDS[asked.kind], name, {}), None


def _check_number(context: RankContext, asked: Handle) -> None:
    """An event is a row of the table: a number beyond it is a mistake, not a fault."""
    if asked.kind == "event" and not (
        asked.name.isascii() and asked.name.isdigit() and int(asked.name) < len(context.trace.events)
    ):
        raise not_there(asked)


def _frames(context: RankContext) -> Callable[[str, Callable[[RankContext], pl.DataFrame]], pl.DataFrame]:
    return lambda _, make: make(context)
