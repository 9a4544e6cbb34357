"""What analyses ask of one rank of a run."""

from __future__ import annotations

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options, parse_steps
from stepscope.analysis.steps.find import times_in_regions
from stepscope.analysis.steps.regions import agree_on_region
from stepscope.server.api.report import wishes
from stepscope.server.http.request import Query
from stepscope.server.runs.opened import OpenedRun


def rank_context(run: OpenedRun, query: Query) -> RankContext:
    """What analyses ask of one rank; the first rank where none is named."""
    rank, step, step_name = wishes(query)
    number = run.profile.ranks[0] if rank is None else rank
    return RankContext(
        number, run.profile.trace(number), Options(step_name, parse_steps(step) if step is not None else None)
    )


def context_of(run: OpenedRun, rank: int) -> RankContext:
    """What analyses ask of the rank, with the steps that the report of all ranks is about."""
    ranks = run.profile.ranks
    region = None
    if len(ranks) > 1:
        (region,) = run.kept("evidence region", lambda: (_region(run),))
    return RankContext(rank, run.profile.trace(rank), Options(region=region))


def _region(run: OpenedRun) -> str | None:
    return agree_on_region([times_in_regions(trace) for trace in run.profile.traces])
