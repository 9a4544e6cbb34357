"""Which slices of the account each finding owns: the events behind it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.registry import find_rules


def owned_slices(case: Case) -> dict[str, pl.DataFrame]:
    """By the code of each finding, its slices of `case.all_slices`; the rules are applied in their turn, as for a report."""
    found: dict[str, pl.DataFrame] = {}
    if case.all_slices.is_empty():
        return found
    for rule in find_rules():
        before = case.unclaimed
        mine = rule.findings(case)
        case.earlier += mine
        for finding in mine:
            taken = before.filter(~before["slice"].is_in(case.unclaimed["slice"].implode()))
            found[finding.code] = taken if len(taken) else _of_steps(case, finding)
    return found


def _of_steps(case: Case, finding: Finding) -> pl.DataFrame:
    """What slow steps do beside computing, for a finding that names steps instead of owning slices."""
    steps = finding.evidence.get("steps")
    named = steps if isinstance(steps, list) else []
    return case.all_slices.filter(pl.col("step").is_in(named), pl.col("part") != "compute")
