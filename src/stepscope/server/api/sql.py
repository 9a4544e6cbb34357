"""SQL over a run's tables: guarded, in a process of its own, bounded in time, memory and rows."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from stepscope.profiles.cache import background as later
from stepscope.profiles.cache.cache import default_folder
from stepscope.profiles.find.runs import Entry
from stepscope.profiles.sql_guard import check
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.api.sql_worker import TOO_LONG, File, Order, Outcome
from stepscope.server.http.request import BadRequest, Refused, json_object
from stepscope.server.runs.listed import ListedRun
from stepscope.trace.schema import TABLES
from stepscope.units import size

LONGEST_QUERY = 20_000
ROWS = 1_000
SECONDS = 20.0
START_SECONDS = 120.0  # for the process to begin and to open the run, on a machine that is very busy
MEMORY_BYTES = 2 << 30
AT_ONCE = 2
_RUN = "from stepscope.server.api.sql_worker import main; main()"
_free = threading.BoundedSemaphore(AT_ONCE)


def sql(ask: Ask) -> Answer:
    """The rows of one SELECT."""
    text = json_object(ask.body).get("query")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest("The body must have a query.", where="query")
    if len(text) > LONGEST_QUERY:
        raise BadRequest(f"The query is longer than {LONGEST_QUERY:,} characters.", where="query")
    if "\0" in text or not _is_unicode(text):
        raise BadRequest("The query has characters that no text has.", where="query")
    check(text, TABLES)
    if not _free.acquire(timeout=2.0):
        raise Refused("Other queries are running.", status=429, fix="Try again when they have ended.")
    try:
        return Json(run_query(ask.run.listed, text, SECONDS, MEMORY_BYTES))
    finally:
        _free.release()


def run_query(listed: ListedRun, text: str, seconds: float, memory: int = MEMORY_BYTES) -> dict[str, Any]:
    """Ask the process; what takes too long or too much is ended."""
    later.wait()  # what was read a moment ago is still being stored, and the process opens it from there
    files = [_file(entry) for entry in listed.run.entries]
    order = Order(text, listed.run.name, listed.run.address, files, ROWS, memory, seconds)
    worker = subprocess.Popen(
        [sys.executable, "-c", _RUN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd=Path(sys.executable).parent,  # a folder of the user may hold modules named as ours
    )
    try:
        answer, _ = worker.communicate(msgspec.json.encode(order), timeout=seconds + START_SECONDS)
    except subprocess.TimeoutExpired:
        raise _too_long(seconds) from None
    finally:
        worker.kill()
        worker.wait()
    if worker.returncode == TOO_LONG:
        raise _too_long(seconds)
    return _told(answer, worker.returncode, memory)


def _too_long(seconds: float) -> Refused:
    return Refused(
        f"The query took longer than {seconds:g} seconds and was ended.",
        status=422,
        fix="Select less: add a WHERE, or use `stepscope query`, which has no limit.",
    )


def _told(answer: bytes, code: int, memory: int) -> dict[str, Any]:
    try:
        outcome = msgspec.json.decode(answer, type=Outcome)
    except msgspec.MsgspecError:
        raise Refused(
            f"The query ended without an answer: it may need more than {size(memory)} of memory.",
            status=422,
            fix="Select less: add a WHERE, or use `stepscope query`, which has no limit.",
        ) from None
    if outcome.error is not None:
        raise Refused(outcome.error, status=400, fix=outcome.fix, where="query")
    return {
        "columns": outcome.columns,
        "rows": outcome.rows,
        "total": outcome.total,
        "truncated": outcome.truncated,
    }


def _file(entry: Entry) -> File:
    path = entry.path if entry.filesystem is not None else os.path.abspath(entry.path)  # noqa: PTH100 (links stay)
    return File(path, entry.format_hint, entry.size, entry.mtime_ns, entry.capture)


def _environment() -> dict[str, str]:
    found = {**os.environ, "POLARS_MAX_THREADS": "2", "PYTHONSAFEPATH": "1"}
    paths = [path if path else str(Path.cwd()) for path in sys.path]
    found["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)  # noqa: PTH100
    try:
        found["STEPSCOPE_CACHE"] = str(default_folder().absolute())
    except RuntimeError:  # no home: there is no cache either
        pass
    return found


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


ROUTES = (RunRoute("sql", sql, "POST"),)
