"""Two runs side by side."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.across.compare import Side, compare
from stepscope.report.build import report
from stepscope.report.summary import own_steps
from stepscope.server.opened import OpenedRun


def comparison(a: OpenedRun, b: OpenedRun) -> dict[str, Any]:
    """What differs between them, with the profiles that they are. Made in the background."""
    sides = [_side(run) for run in (a, b)]
    found: dict[str, Any] = msgspec.to_builtins(compare(*sides))
    for name, run, side in zip("ab", (a, b), sides, strict=True):
        found[name] = {"id": run.listed.id, "name": run.listed.name, "profile": side.report["profile"]}
    return found


def _side(run: OpenedRun) -> Side:
    """All rows: a name among the first hundred of one run may be far down in the other."""
    return run.later("compare side", lambda: _made(run), "comparing")


def _made(run: OpenedRun) -> Side:
    found = report(run.profile, limit=0)
    return Side(msgspec.to_builtins(found), own_steps(found))
