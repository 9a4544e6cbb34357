"""What is wrong with a profile, or with this machine."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.analysis.problem_events import EVENTS
from stepscope.doctor.diagnose import diagnose, diagnose_profile
from stepscope.doctor.profile.subject import Examined
from stepscope.errors import StepscopeError
from stepscope.profiles.find.catalog import Catalog
from stepscope.server.http.request import Refused
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.opened import Opened


def of_run(opened: Opened, listed: ListedRun) -> dict[str, Any]:
    """The diagnosis of a run; one that cannot be read has one, too."""
    try:
        run = opened.get(listed)
    except Refused:
        raise
    except StepscopeError as error:
        return _told(Examined(_catalog(listed), error=error))
    return run.later("doctor", lambda: _told(Examined(_catalog(listed), run.profile)))


def of_machine() -> dict[str, Any]:
    """The diagnosis of the machine and the Python that serve the page."""
    found: dict[str, Any] = msgspec.to_builtins(diagnose())
    return found


def _told(examined: Examined) -> dict[str, Any]:
    """With the codes whose events the trace viewer shows."""
    found: dict[str, Any] = msgspec.to_builtins(diagnose_profile(examined))
    codes = [result["code"] for result in found["results"]] if examined.profile is not None else []
    return found | {"with_events": [code for code in codes if code in EVENTS]}


def _catalog(listed: ListedRun) -> Catalog:
    run = listed.run
    return Catalog(run.address or run.name, [run], [], len(run.entries), 0)
