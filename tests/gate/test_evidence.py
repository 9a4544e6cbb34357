"""A gate judges what the profile can show, and never passes without a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analysis.options import Options
from stepscope.diffs.side import side_of
from stepscope.errors import StepscopeError
from stepscope.gate.budget import Baseline, Budget
from stepscope.gate.check import gate
from stepscope.gate.evidence import NO_MEMORY, NO_STEPS, why_unseen
from stepscope.profiles.load import load

PROFILE = Path(__file__).parent.parent / "fixtures" / "diagnosis" / "torch_item.slow.pt.trace.json.gz"


def report(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "steps": {"source": "marker"},
        "problems": [],
        "memory": {"devices": [{"peak_bytes": 1}]},
        "profile": {"ranks": [0, 1], "world_size": 2},
    }
    return {**found, **changes}


def failed(*sections: str) -> dict[str, str]:
    return {"code": "analysis-failed", "title": f"Not everything could be computed: {', '.join(sections)}"}


@pytest.mark.parametrize(
    ("code", "changes", "why"),
    [
        ("device-sync", {}, ""),
        ("device-sync", {"steps": {"source": "none"}}, NO_STEPS),
        ("device-sync", {"problems": [failed("ops", "findings")]}, "The findings could not be computed."),
        ("device-sync", {"problems": [failed("ops")]}, ""),
        ("device-sync", {"memory": {"devices": []}}, ""),
        ("memory-growth", {"memory": {"devices": []}}, NO_MEMORY),
        ("memory-pressure", {"memory": {"devices": [{"peak_bytes": None}]}}, NO_MEMORY),
        ("straggler", {}, ""),
        ("straggler", {"profile": {"ranks": [1], "world_size": 2}}, "Only one rank of the job was loaded."),
        ("straggler", {"profile": {"ranks": [0], "world_size": None}}, ""),
    ],
)
def test_what_can_be_seen(code: str, changes: dict[str, Any], why: str) -> None:
    assert why_unseen(code, report(**changes)) == why


@pytest.mark.parametrize("budget", [Budget(), Budget(baseline=Baseline())])
def test_no_limit_is_no_verdict(budget: Budget) -> None:
    """Whatever made such a budget: reading one refuses it."""
    side = side_of(load(str(PROFILE)), Options(limit=0))
    with pytest.raises(StepscopeError, match="was judged: the budget has no limit"):
        gate(side, budget)
