"""Tables of a run, sorted, filtered and paged here: those of the report, and the trace's own."""

from __future__ import annotations

import polars as pl

from stepscope.profiles.profile import Profile
from stepscope.reports.build import report
from stepscope.reports.model.report import Report
from stepscope.reports.tables.tables import tables_of
from stepscope.server.api.report import whole_report, wishes
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute, Stream, download
from stepscope.server.api.table_view import View, nothing, of_report, of_trace
from stepscope.server.http.request import Refused
from stepscope.trace.schema import TABLES

MOST_ROWS = 1_000
ROWS = 50
LONGEST_FILTER = 500
OPS_BY = ("scope", "shapes", "placement", "stack")
# The report's tables, and the sections they are in.
SECTIONS = {
    "steps": "steps",
    "breakdown": "breakdown",
    "breakdown_names": "breakdown",
    "phases": "phases",
    "serving": "serving",
    "critical_path": "critical_path",
    "graphs": "ops",
    "unknown_precision": "precision",
    "regions": "regions",
    "hang": "hang",
    "hang_groups": "hang",
    "hang_calls": "hang",
    "hang_stacks": "hang",
    "findings": "findings",
    "problems": "problems",
    "input": "input",
    "ops": "ops",
    "kernels": "kernels",
    "precision": "precision",
    "compute": "roofline",
    "roofline": "roofline",
    "peaks": "roofline",
    "copies": "device",
    "memory": "memory",
    "memory_at_peak": "memory",
    "collectives": "collectives",
    "collectives_ranks": "collectives",
    "collectives_worst": "collectives",
    "collectives_clocks": "collectives",
    "coverage": "coverage",
    "coverage_gaps": "coverage",
}
# The trace's own table, where the report has one of the same name.
OWN = "trace."


def table(ask: Ask) -> Answer:
    """A page of rows as JSON, or all matching rows as CSV."""
    (name,) = ask.words
    query = ask.query
    filtered = query.text("filter", LONGEST_FILTER, "")
    sort, descending = query.text("sort", 100, ""), query.flag("desc")
    as_csv = query.choice("as", ("json", "csv"), "json") == "csv"
    offset, limit = query.integer("offset", 0, 10**9, 0), query.integer("limit", 0, MOST_ROWS, ROWS)
    which, view = _view(ask, name)
    key = f"order {which} {filtered!r} {sort!r} {descending}"
    (order,) = ask.run.later(key, lambda: (view.order(filtered, sort, descending),), "sorting")
    if as_csv:
        return Stream(
            view.csv(order, raw=query.flag("raw")),
            "text/csv; charset=utf-8",
            download(f"{ask.run.listed.name}.{name}.csv"),
        )
    return Json(
        {
            "columns": view.about(),
            "rows": view.page(order, offset, limit),
            "total": len(view.frame),
            "matching": len(view.frame) if order is None else len(order),
        }
    )


def _view(ask: Ask, name: str) -> tuple[str, View]:
    """What identifies the table, and the table."""
    rank, step, step_name = wishes(ask.query)
    by = ask.query.choices("by", OPS_BY) if name == "ops" else ()
    if name in SECTIONS:
        which = f"table {name} {rank} {step} {step_name} {by}"
        if by:
            found = ask.run.later(
                f"report {which}", lambda: _split_ops(ask.run.profile, rank, step, step_name, by)
            )
        else:
            found = whole_report(ask.run, rank, step, step_name)
        return which, ask.run.kept(which, lambda: _of_report(found, name))
    own = name.removeprefix(OWN)
    if own not in TABLES:
        known = ", ".join(sorted({*SECTIONS, *TABLES}))
        raise Refused("There is no such table.", status=404, fix=f"The tables are {known}.")
    which = f"table {OWN}{own} {rank}"
    return which, of_trace(_own(ask.run.profile, own, rank))


def _split_ops(
    profile: Profile, rank: int | None, step: str | None, step_name: str | None, by: tuple[str, ...]
) -> Report:
    return report(profile, rank=rank, step=step, step_name=step_name, sections=["ops"], limit=0, ops_by=by)


def _of_report(found: Report, name: str) -> View:
    tables = [each for each in tables_of(found, SECTIONS[name]) if each.name == name]
    return of_report(tables[0]) if tables else nothing()


def _own(profile: Profile, name: str, rank: int | None) -> pl.DataFrame:
    return profile.table(name) if rank is None else profile.trace(rank).tables[name]


ROUTES = (RunRoute("table/*", table),)
