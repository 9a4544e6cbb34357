"""SQL over a run's tables: in a process of its own that can open nothing, bounded in time, memory and rows."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.errors import QueryRefused
from stepscope.profiles.sql.client import QueryFailed, QueryTooLarge, QueryTooLong, Workers
from stepscope.profiles.sql.wire import Order
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.api.table_view import of_trace
from stepscope.server.http.request import BadRequest, Refused, json_object
from stepscope.server.runs.opened import OpenedRun

LONGEST_QUERY = 20_000
ROWS = 1_000
SECONDS = 20.0
MEMORY_BYTES = 2 << 30
THREADS = 2
AT_ONCE = 2
PATIENCE_S = 2.0
LARGEST_ANSWER = 32 << 20
_workers = Workers(AT_ONCE)


def sql(ask: Ask) -> Answer:
    """The rows of one SELECT."""
    text = json_object(ask.body).get("query")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest("The body must have a query.", where="query")
    if len(text) > LONGEST_QUERY:
        raise BadRequest(f"The query is longer than {LONGEST_QUERY:,} characters.", where="query")
    if "\0" in text or not _is_unicode(text):
        raise BadRequest("The query has characters that no text has.", where="query")
    return Json(run_query(ask.run, text, SECONDS, MEMORY_BYTES))


def run_query(run: OpenedRun, text: str, seconds: float, memory: int = MEMORY_BYTES) -> dict[str, Any]:
    """Ask a worker; what takes too long or too much is ended."""
    order = Order(text, seconds, memory, THREADS, ROWS)
    try:
        answer = _workers.ask(f"{run.listed.id} {run.key}", order, run.profile.table, PATIENCE_S)
    except (QueryTooLong, QueryTooLarge) as error:
        fix = f"{error.fix} `stepscope query` has no limit."
        raise Refused(error.what, status=422, fix=fix, where="query") from None
    except (QueryFailed, QueryRefused) as error:
        raise Refused(error.what, status=400, fix=error.fix, where="query") from None
    if answer is None:
        raise Refused("Other queries are running.", status=429, fix="Try again when they have ended.")
    view = of_trace(answer.frame)
    rows = _that_fit(view.page(None, 0, ROWS))
    return {
        "columns": view.about(),
        "rows": rows,
        "total": answer.rows,
        "truncated": answer.rows > len(rows),
    }


def _that_fit(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without those at the end that would make the answer larger than a page can take."""
    while rows and len(msgspec.json.encode(rows)) > LARGEST_ANSWER:
        rows = rows[: len(rows) // 2]
    return rows


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


ROUTES = (RunRoute("sql", sql, "POST"),)
