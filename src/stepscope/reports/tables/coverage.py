"""The tables of what a recording has of all that could be known, and of what would close its gaps."""

from __future__ import annotations

from stepscope.reports.model.report import Report
from stepscope.reports.tables.table import Column, Table, table

_COVERAGE = (Column("what", "what"), Column("share", "covered", "share"))
_GAPS = (
    Column("what", "what"),
    Column("share", "missing", "share"),
    Column("reason", "why"),
    Column("fix", "what closes it"),
)
_TITLES = {"device_time": "device time, by op", "memory": "memory, by op"}
_COVERED = ("runtime", "device_time", "memory", "shapes", "stacks", "step_time")


def coverage_tables(report: Report) -> list[Table]:
    """What is covered, and what is not, with the reason."""
    rows = [
        {"what": _TITLES.get(what, what.replace("_", " ")), "share": getattr(report.coverage, what)}
        for what in _COVERED
        if getattr(report.coverage, what) is not None
    ]
    gaps = [{**{key: getattr(gap, key) for key in ("share", "reason", "fix")}, "what": gap.what.replace("_", " ")} for gap in report.coverage.gaps]  # fmt: skip
    return [
        table("coverage", "coverage", _COVERAGE, rows, bar="share"),
        table("coverage_gaps", "not covered", _GAPS, gaps),
    ]
