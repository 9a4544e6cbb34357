"""The report of a run, as `stepscope report --format json` gives it."""

from __future__ import annotations

import msgspec

from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.build import report
from stepscope.reports.model.report import Report
from stepscope.server.api.routes import Answer, Ask, Binary, Json, RunRoute
from stepscope.server.http.request import Query
from stepscope.server.runs.opened import OpenedRun

HIGHEST_RANK = 1_000_000
LONGEST_NAME = 500
WHOLE = "report with all rows"


def report_json(ask: Ask) -> Answer:
    """All sections."""
    wanted = wishes(ask.query)
    name = "report json {} {} {}".format(*wanted)
    data = ask.run.later(name, lambda: msgspec.json.encode(_report(ask.run, *wanted)))
    if wanted == (None, None, None):  # whoever reads the report looks at its tables next
        ask.run.soon(WHOLE, lambda: _report(ask.run, limit=0))
    return Binary(data, "application/json")


def whole_report(
    run: OpenedRun, rank: int | None = None, step: str | None = None, step_name: str | None = None
) -> Report:
    """With all rows of all tables: made once, for all of them."""
    name = WHOLE if (rank, step, step_name) == (None, None, None) else f"{WHOLE} {rank} {step} {step_name}"
    return run.later(name, lambda: _report(run, rank, step, step_name, limit=0))


def ranks(ask: Ask) -> Answer:
    """Which there are; the report of one rank does not say."""
    return Json({"ranks": list(ask.run.profile.ranks)})


def wishes(query: Query) -> tuple[int | None, str | None, str | None]:
    """Of which rank, of which steps, and what marks these."""
    rank = query.maybe_integer("rank", 0, HIGHEST_RANK)
    step = query.text("step", 40, "") or None
    return rank, step, query.text("step_name", LONGEST_NAME, "") or None


def _report(
    run: OpenedRun,
    rank: int | None = None,
    step: str | None = None,
    step_name: str | None = None,
    limit: int = REPORT_ROWS,
) -> Report:
    return report(run.profile, rank=rank, step=step, step_name=step_name, limit=limit)


ROUTES = (RunRoute("report", report_json), RunRoute("ranks", ranks))
