"""A gate judges what the profile can show, and never passes without a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analysis.options import Options
from stepscope.diffs.side import read_side
from stepscope.errors import StepscopeError
from stepscope.gate.budget import Baseline, Budget
from stepscope.gate.check import check_side
from stepscope.gate.evidence import explain_unseen
from stepscope.gate.wording import NO_FINDINGS, NO_MEMORY, NO_STEPS, ONE_RANK
from stepscope.profiles.load import load
from stepscope.reports.model.report import Memory, MemoryDevice, Problem, Profile, Report, Steps
from stepscope.reports.problems import reported
from stepscope.trace.problems import problem

PROFILE = Path(__file__).parent.parent / "fixtures" / "diagnosis" / "torch_item.slow.pt.trace.json.gz"


def report(**changes: Any) -> Report:
    fields: dict[str, Any] = {
        "profile": profile([0, 1], 2),
        "steps": Steps(source="marker"),
        "memory": Memory(devices=[MemoryDevice(peak_bytes=1)]),
    }
    return Report(**{**fields, **changes})


def profile(ranks: list[int], world_size: int | None) -> Profile:
    return Profile(path="", ranks=ranks, world_size=world_size)


def failed(*sections: str) -> Problem:
    return reported(problem("analysis-failed", sections=", ".join(sections)))


@pytest.mark.parametrize(
    ("code", "changes", "why"),
    [
        ("device-sync", {}, ""),
        ("device-sync", {"steps": Steps(source="none")}, NO_STEPS),
        ("device-sync", {"problems": [failed("ops", "findings")]}, NO_FINDINGS),
        ("device-sync", {"problems": [failed("ops")]}, ""),
        ("device-sync", {"memory": Memory()}, ""),
        ("memory-growth", {"memory": Memory()}, NO_MEMORY),
        ("memory-pressure", {"memory": Memory(devices=[MemoryDevice()])}, NO_MEMORY),
        ("straggler", {}, ""),
        ("straggler", {"profile": profile([1], 2)}, ONE_RANK),
        ("straggler", {"profile": profile([0], None)}, ""),
    ],
)
def test_what_can_be_seen(code: str, changes: dict[str, Any], why: str) -> None:
    assert explain_unseen(code, report(**changes)) == why


@pytest.mark.parametrize("budget", [Budget(), Budget(baseline=Baseline())])
def test_no_limit_is_no_verdict(budget: Budget) -> None:
    """Whatever made such a budget: reading one refuses it."""
    side = read_side(load(str(PROFILE)), Options(limit=0))
    with pytest.raises(StepscopeError, match="was judged: the budget has no limit"):
        check_side(side, budget)
