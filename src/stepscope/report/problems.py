"""Defects of the capture, errors first, each told once however many ranks have it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from stepscope.profile.overview import ProblemTold, problems_told
from stepscope.profile.profile import Profile
from stepscope.profile.ranks import spans
from stepscope.report.model import Problem
from stepscope.trace.schema import SEVERITIES


def problems_of(profile: Profile, ranks: Collection[int], more: Sequence[Problem]) -> list[Problem]:
    """Those of the chosen ranks and of the profile as a whole, and those that the report itself met."""
    table = profile.table("problems")
    if "rank" in table.columns:
        table = table.filter(pl.col("rank").is_in(list(ranks)) | pl.col("rank").is_null())
    found = [*(_told(each, len(profile.ranks)) for each in problems_told(table)), *more]
    return sorted(found, key=lambda problem: SEVERITIES.index(problem.severity))


def _told(problem: ProblemTold, ranks: int) -> Problem:
    where = f" On ranks {spans(problem.ranks)}." if ranks > 1 and len(problem.ranks) > 1 else ""
    return Problem(
        code=problem.code,
        severity=problem.severity,
        title=problem.title,
        detail=problem.detail + where,
        fix=problem.fix,
        rank=problem.ranks[0] if len(problem.ranks) == 1 else None,
        count=problem.count,
    )
