"""The report of a run, as `stepscope report --format json` gives it."""

from __future__ import annotations

import msgspec

from stepscope.report.build import report
from stepscope.report.model import Report
from stepscope.server.opened import OpenedRun
from stepscope.server.request import Query
from stepscope.server.routes import Answer, Ask, Binary, RunRoute

HIGHEST_RANK = 1_000_000
LONGEST_NAME = 500


def report_json(ask: Ask) -> Answer:
    """All sections."""
    rank, step, step_name = wishes(ask.query)
    name = f"report json {rank} {step} {step_name}"
    data = ask.run.later(name, lambda: msgspec.json.encode(_report(ask.run, rank, step, step_name)))
    return Binary(data, "application/json")


def wishes(query: Query) -> tuple[int | None, str | None, str | None]:
    """Of which rank, of which steps, and what marks these."""
    rank = query.maybe_integer("rank", 0, HIGHEST_RANK)
    step = query.text("step", 40, "") or None
    return rank, step, query.text("step_name", LONGEST_NAME, "") or None


def _report(run: OpenedRun, rank: int | None, step: str | None, step_name: str | None) -> Report:
    return report(run.profile, rank=rank, step=step, step_name=step_name)


ROUTES = (RunRoute("report", report_json),)
