"""The model `stretched`: a random case of it as a job."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.ranks.case import make_healthy
from benchmarks.ranks.job import Job, Model, TrueClock
from benchmarks.ranks.stretched.base import base_of
from benchmarks.ranks.stretched.case import Case, random_case
from benchmarks.ranks.stretched.make import START_UNIX_NS, traces
from benchmarks.ranks.stretched.simulate import Simulated, simulate


def job_of(case: Case) -> Job:
    """The job of this case; what the late rank costs follows from the same job without it."""
    base = base_of(case.source, case.steps)
    simulated = simulate(case, base)
    end = max(float(meeting.end.max()) for meeting in simulated.meetings)
    healthy = case.kind == "healthy"
    return Job(
        case=case,
        cost=0.0 if healthy else 1 - simulate(make_healthy(case), base).end_ns / simulated.end_ns,
        causes=(case.cause,),
        start_unix_ns=START_UNIX_NS,
        clocks={
            rank: TrueClock(float(simulated.offset[rank]), float(simulated.drift[rank]))
            for rank in range(case.ranks)
        },
        moments=(0.0, end / 2, end),
        read=lambda: traces(simulated),
        spent_ns=_spent_ns(simulated),
    )


def _spent_ns(simulated: Simulated) -> Mapping[tuple[str, int], Mapping[int, float]]:
    return {
        (meeting.group, meeting.sequence): dict(
            zip(meeting.members.tolist(), (meeting.end - meeting.arrival).tolist(), strict=True)
        )
        for meeting in simulated.meetings
    }


def _draw(seed: int, kind: str, ranks: int) -> Job:
    return job_of(random_case(seed, kind, ranks))


STRETCHED = Model("stretched", _draw, attempts=100, cases=100, healthy=100, required=True)
