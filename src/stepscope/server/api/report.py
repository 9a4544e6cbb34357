"""The report of a run, as `stepscope report --format json` gives it."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from stepscope.analysis.options import Options, parse_steps
from stepscope.profiles.cache import background
from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.build import build
from stepscope.reports.kept import Asked
from stepscope.reports.report import Report
from stepscope.server.api.routes import Answer, Ask, Binary, Json, RunRoute, kept_first
from stepscope.server.http.request import Query
from stepscope.server.runs.first import FirstAnswers
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.runs.owned import kept_owned_time

HIGHEST_RANK = 1_000_000
LONGEST_NAME = 500
WHOLE = "report with all rows"
WHOLE_AFTER_S = 1.0  # the page draws itself until then


def report_json(ask: Ask) -> Answer:
    """All sections."""
    wanted = wishes(ask.query)
    name = "report json {} {} {}".format(*wanted)
    data = ask.run.later(name, lambda: _report_json(ask.run, *wanted))
    if wanted == (None, None, None):  # whoever reads the report looks at its tables next
        ask.run.soon(WHOLE, lambda: _report(ask.run, limit=0), WHOLE_AFTER_S)
    return Binary(data, "application/json")


def kept_json(first: FirstAnswers, query: Query) -> Answer | None:
    """The same of a run that is not open yet, if it was made before."""
    data = first.report_json(_asked(*wishes(query)))
    return None if data is None else Binary(data, "application/json")


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


def _asked(
    rank: int | None = None, step: str | None = None, step_name: str | None = None, limit: int = REPORT_ROWS
) -> Asked:
    return Asked(rank=rank, step=step, step_name=step_name, limit=limit)


def _report_json(run: OpenedRun, *wanted: Any) -> bytes:
    kept = run.first.report_json(_asked(*wanted))
    return msgspec.json.encode(_report(run, *wanted)) if kept is None else kept


def _report(
    run: OpenedRun,
    rank: int | None = None,
    step: str | None = None,
    step_name: str | None = None,
    limit: int = REPORT_ROWS,
) -> Report:
    asked = _asked(rank, step, step_name, limit)
    kept = run.first.report(asked)
    if kept is not None:
        return kept
    options = Options(step_name, parse_steps(step) if step is not None else None, limit)
    is_plain = (rank, step, step_name) == (None, None, None) and len(run.profile.ranks) == 1
    with background.postponed():
        made = build(run.profile, options, rank, also=partial(kept_owned_time, run) if is_plain else None)
    return run.first.keep_report(asked, made)


ROUTES = (RunRoute("report", report_json, kept=kept_json), kept_first("ranks", ranks))
