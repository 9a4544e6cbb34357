"""From a profile and a budget to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.options import Options
from stepscope.diffs.build import diff_of
from stepscope.diffs.data.samples import repeated
from stepscope.diffs.side import side_of
from stepscope.errors import StepscopeError
from stepscope.gate.budget import Budget
from stepscope.gate.check import Gate, gate
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile


def check(
    profile: Profile,
    budget: Budget,
    *,
    options: Options | None = None,
    baseline: Sequence[Profile] = (),
    strict: bool = False,
) -> Gate:
    """The profile against its budget; recordings of the baseline are loaded from where the budget says, unless given."""
    wanted = options or Options(limit=0)
    side = side_of(profile, wanted)
    base = budget.baseline
    if base is None:
        return gate(side, budget, strict=strict)
    if not (baseline or base.paths):
        raise StepscopeError(
            "The budget has baseline limits, but no baseline.",
            fix='Name one with --baseline PATH, or path = "…" below [baseline].',
        )
    before = repeated([side_of(each, wanted) for each in baseline or map(load, base.paths)])
    return gate(side, budget, diff_of(before, side), strict=strict)
