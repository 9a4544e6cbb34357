"""Which slices of the account each finding owns: the events behind it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.apply import judge
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding


def owned_slices(case: Case) -> dict[str, pl.DataFrame]:
    """By the code of each finding, its slices of `case.all_slices`; those of the report, where it was made of this case."""
    found: dict[str, pl.DataFrame] = {}
    if case.all_slices.is_empty():
        return found
    owned = judge(case)
    for finding in case.earlier:
        claims = [each for each in owned[finding.code] if len(each)]
        # A claim is in the order of the slices, and so is what several of them own together.
        found[finding.code] = (
            case.all_slices[pl.concat(claims).sort()] if claims else _of_steps(case, finding)
        )
    return found


def _of_steps(case: Case, finding: Finding) -> pl.DataFrame:
    """What slow steps do beside computing, for a finding that names steps instead of owning slices."""
    steps = finding.evidence.get("steps")
    named = steps if isinstance(steps, list) else []
    return case.all_slices.filter(pl.col("step").is_in(named), pl.col("part") != "compute")
