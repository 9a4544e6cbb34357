"""The list of runs as the page shows it."""

from __future__ import annotations

from typing import Any

from stepscope.safe import readable
from stepscope.server.api.response import progress_of
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.opened import Opened
from stepscope.server.runs.watch import Runs


def shown_runs(runs: Runs, opened: Opened) -> dict[str, Any]:
    """All runs, the newest first, and what else is in their folders."""
    found = runs.found()
    return {
        "runs": [_row(run, opened) for run in found.runs.values()],
        "skipped": [{"path": readable(item.path), "reason": readable(item.reason)} for item in found.skipped],
        "scanning": not found.is_complete,
    }


def _row(listed: ListedRun, opened: Opened) -> dict[str, Any]:
    state, progress, error = opened.state(listed)
    run = listed.run
    return {
        "id": listed.id,
        "name": listed.name,
        "place": listed.place,
        "format": listed.format,
        "files": len(run.entries),
        "bytes": run.size,
        "ranks": len(run.entries),
        "modified_ns": run.time_ns,
        "state": state,
        "progress": progress_of(progress),
        "error": None if error is None else {"what": error.what, "where": "", "fix": error.fix or ""},
    }
