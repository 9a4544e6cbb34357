"""One random job: made, read and compared with what is true of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import stepscope
from benchmarks.ranks.physical.case import Case, random_case
from benchmarks.ranks.physical.plan import planned
from benchmarks.ranks.physical.run import Job, Step, mean_step
from benchmarks.ranks.physical.source import paths, source_of
from benchmarks.ranks.physical.write import START_UNIX_NS, clock, write
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.ranks.clocks.offsets import Clock
from stepscope.ranks.compare import Compared, compare
from stepscope.reports.sections.collectives import rank_calls

CLOCK_ERROR_NS = 20_000
_LEAST_COST = 0.04  # of the job's time; the finding wants 3 %
_NEAR = 0.15  # of what is wanted, the cost that is near enough
_ROUNDS = 6
_MOST = 1.0  # steps: what takes longer and costs little is hidden but for the first time
_DISPATCH = ("dispatch", "python")  # slower Python between ops is either


@dataclass(frozen=True)
class Row:
    """What is told of one job; small, since it travels between processes."""

    kind: str
    right: bool
    right_cause: bool
    clock_error_ns: int
    stated_ns: int
    text: str


def scored(wanted: tuple[int, int, str]) -> Row:
    """The job of this number: who is late in it costs what is worth telling."""
    run, number, kind = wanted
    for attempt in range(20):
        seed = int(np.random.SeedSequence((run, number, attempt)).generate_state(1)[0])
        job, cost = _with_cost(random_case(seed, kind))
        if kind == "healthy" or cost >= _LEAST_COST:
            break
    return _row(job, cost)


def _with_cost(case: Case) -> tuple[Job, float]:
    """The job, with an amount by which the late one costs about what is wanted, and what that is."""
    source = source_of(paths()[case.source])
    job = Job(case, source, planned(case, source))
    if case.kind == "healthy":
        return job, 0.0
    usual = mean_step(replace(job, case=case.healthy).run())
    wanted = case.size * len(case.late_steps) / case.steps
    job, cost = replace(job, amount=case.size * usual / source.length), 0.0
    for _ in range(_ROUNDS):
        cost = mean_step(job.run()) / usual - 1
        if job.amount > _MOST:
            return job, 0.0
        if abs(cost - wanted) < _NEAR * wanted:
            break
        job = replace(job, amount=job.amount * min(2.5, max(0.4, wanted / max(cost, 1e-3))))
    return job, cost


def _row(job: Job, cost: float) -> Row:
    case, ranks = job.case, job.run()
    found = _read(job, ranks)
    late = found.straggler
    told = (late.rank, late.kind) if late else (None, "healthy")
    error, stated = _clock_errors(job, ranks, found.clocks)
    right = told == (case.rank, case.kind)
    causes = _DISPATCH if case.cause == "dispatch" else (case.cause,)
    verdict = f"{late.kind} {late.ranks} {late.cause} {late.share:.1%}" if late else "nobody"
    return Row(
        kind=case.kind,
        right=right,
        right_cause=right and (late is None or late.cause in causes),
        clock_error_ns=error,
        stated_ns=stated,
        text=f"{case} costs {cost:.1%} -> {verdict}, clocks {error / 1000:.1f} µs, stated {stated / 1000:.1f} µs",
    )


def _read(job: Job, ranks: list[list[Step]]) -> Compared:
    with tempfile.TemporaryDirectory() as folder:
        write(job, ranks, Path(folder))
        calls = {}
        for rank in range(job.case.world):
            if rank not in job.case.missing:
                path = Path(folder) / f"rank{rank}.pt.trace.json"
                context = RankContext(rank, stepscope.load(path, cache=False).traces[0], Options())
                calls[rank] = rank_calls(context, collective_calls(context.trace, context.account))
        return compare(calls)


def _clock_errors(job: Job, ranks: list[list[Step]], clocks: Mapping[int, Clock]) -> tuple[int, int]:
    """The worst at the first and the last call, and what is stated of it: the residual, or three standard errors."""
    first = min(clocks)
    ends = [
        end
        for steps in ranks
        for step in steps
        for meeting, *_ in step.calls
        for end in meeting.ends.values()
    ]
    offset, drift = clock(job, first)
    worst, stated = 0.0, 0
    for rank, fitted in clocks.items():
        own_offset, own_drift = clock(job, rank)
        for true in (min(ends), max(ends)):
            shown, wanted = true * (1 + own_drift) + own_offset, true * (1 + drift) + offset
            straight = shown * 1000 - fitted.offset_ns
            since = straight - (fitted.middle_ns - START_UNIX_NS)
            worst = max(worst, abs(straight - fitted.drift * since - wanted * 1000))
        stated = max(stated, fitted.residual_ns or 0, 3 * (fitted.error_ns or 0))
    return round(worst), stated
