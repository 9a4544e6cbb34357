"""Defects of the capture, errors first, each reported once however many ranks have it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from stepscope.problems.catalogue import cause_of
from stepscope.profiles.apart import ranks_apart
from stepscope.profiles.overview import ProblemTold, problems_told
from stepscope.profiles.profile import Profile
from stepscope.profiles.ranks import spans
from stepscope.ranks.hangs.calls import is_dump
from stepscope.reports.model.report import Problem
from stepscope.trace import problems
from stepscope.trace.problems import Problems
from stepscope.trace.schema import SEVERITIES


def problems_of(
    profile: Profile, ranks: Collection[int], more: Sequence[pl.DataFrame], failures: Sequence[Problem]
) -> list[Problem]:
    """Those that were met while reading, those of the finished traces, and what the report could not compute."""
    table = profile.table("problems")
    if "rank" not in table.columns:
        table = table.with_columns(rank=pl.lit(profile.ranks[0], dtype=pl.Int32))
    table = pl.concat([table, *more, _between(profile, ranks)], how="diagonal")
    table = table.filter(pl.col("rank").is_in(list(ranks)) | pl.col("rank").is_null())
    found = [*(_told(each, len(profile.ranks)) for each in problems_told(table)), *failures]
    return sorted(found, key=lambda problem: SEVERITIES.index(problem.severity))


def _between(profile: Profile, ranks: Collection[int]) -> pl.DataFrame:
    """What only a comparison of the ranks shows."""
    found = Problems()
    # Dumps are compared by their calls: the spans of one rank may well end before those of another begin.
    traces = [(rank, profile.trace(rank)) for rank in ranks]
    apart = ranks_apart([(rank, trace) for rank, trace in traces if not is_dump(trace)])
    if apart is not None:
        found.add(apart)
    return found.frame()


def reported(found: problems.Problem, rank: int | None = None) -> Problem:
    """A problem as the report shows it."""
    return Problem(
        code=found.code,
        severity=found.severity,
        title=found.title,
        detail=found.detail.replace("{count}", f"{found.count:,}"),
        cause=cause_of(found.code),
        fix=found.fix,
        rank=rank,
        count=found.count,
    )


def _told(problem: ProblemTold, ranks: int) -> Problem:
    several = ranks > 1 and len(problem.ranks) > 1
    where = f" On ranks {spans(problem.ranks)}." if several else ""
    return Problem(
        code=problem.code,
        severity=problem.severity,
        title=problem.title,
        detail=problem.detail + where,
        cause=problem.cause,
        fix=problem.fix,
        rank=problem.ranks[0] if len(problem.ranks) == 1 and ranks > 1 else None,
        count=problem.count,
    )
