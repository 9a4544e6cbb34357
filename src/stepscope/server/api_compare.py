"""Two runs side by side."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.across import diff_samples
from stepscope.across.compare import Side, compare, judged
from stepscope.report.diff_build import diff_of
from stepscope.report.diff_side import side_of
from stepscope.report.options import Options
from stepscope.report.summary import own_steps
from stepscope.server.api_report import whole_report
from stepscope.server.opened import OpenedRun


def comparison(a: OpenedRun, b: OpenedRun) -> dict[str, Any]:
    """What differs between them, with the profiles that they are. Made in the background."""
    sides = [_side(run) for run in (a, b)]
    diff = diff_of(_samples(a), _samples(b), limit=0)
    found: dict[str, Any] = msgspec.to_builtins(judged(compare(*sides), diff))
    for name, run, side in zip("ab", (a, b), sides, strict=True):
        found[name] = {"id": run.listed.id, "name": run.listed.name, "profile": side.report["profile"]}
    return found


def difference(a: OpenedRun, b: OpenedRun) -> bytes:
    """The diff as `stepscope diff --format json` gives it: what changed beyond noise, and what explains it."""
    return msgspec.json.encode(diff_of(_samples(a), _samples(b)))


def _side(run: OpenedRun) -> Side:
    """All rows: a name among the first hundred of one run may be far down in the other."""
    found = whole_report(run)
    return Side(msgspec.to_builtins(found), own_steps(found))


def _samples(run: OpenedRun) -> diff_samples.Side:
    return run.later("diff side", lambda: side_of(run.profile, Options(limit=0)), "comparing")
