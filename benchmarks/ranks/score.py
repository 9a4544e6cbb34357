"""How well a job was read: clocks, which rank is late, of which kind and why, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ranks.discrete.model import DISCRETE
from benchmarks.ranks.job import Job, Model
from benchmarks.ranks.nccl import ELEMENTS
from benchmarks.ranks.stretched.model import STRETCHED
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.ranks.clocks.offsets import Clock
from stepscope.ranks.compare import Calls, Compared, compare
from stepscope.reports.sections.collectives import rank_calls

MODELS = {model.name: model for model in (STRETCHED, DISCRETE)}
CLOCK_ERROR_NS = 20_000
# Of the job's time, by a simulation of the same job without a late rank; the finding asks for 3 %.
LEAST_COST = 0.04


@dataclass(frozen=True)
class Score:
    """What was found, beside what is true."""

    job: Job
    clock_error_ns: int  # the worst rank's, at the worst of the job's moments
    residual_ns: int  # the worst that was stated
    stated_ns: int  # the same, or three standard errors
    kind: str
    ranks: tuple[int, ...]
    cause: str | None
    bus_error: float | None  # of the bus bandwidth, relative; None where the model has no truth of it
    share: float  # of the time, as reported

    @property
    def right(self) -> bool:
        """Whether the rank and the kind are named; in a healthy job, whether no rank is."""
        case = self.job.case
        return self.kind == case.kind and (case.rank is None or self.ranks == (case.rank,))

    @property
    def right_cause(self) -> bool:
        """Whether the part that makes it late is named too."""
        return self.right and self.cause in self.job.causes


def score(job: Job) -> Score:
    """Read the job, and compare with its truth."""
    found = compare({rank: _calls(RankContext(rank, trace, Options())) for rank, trace in job.read()})
    late = found.straggler
    return Score(
        job=job,
        clock_error_ns=_clock_error_ns(job, found),
        residual_ns=max(clock.residual_ns or 0 for clock in found.clocks.values()),
        stated_ns=max(_stated_ns(clock) for clock in found.clocks.values()),
        kind=late.kind if late else "healthy",
        ranks=late.ranks if late else (),
        cause=late.cause if late else None,
        bus_error=_bus_error(job, found),
        share=late.share if late else 0.0,
    )


def _calls(context: RankContext) -> Calls:
    return rank_calls(context, collective_calls(context.trace, context.account))


def _stated_ns(clock: Clock) -> int:
    return max(clock.residual_ns or 0, 3 * (clock.error_ns or 0))


def _clock_error_ns(job: Job, found: Compared) -> int:
    """How far times of any rank are from those of the first, after the clocks were aligned."""
    first = job.clocks[min(found.clocks)]
    worst = 0.0
    for rank, clock in found.clocks.items():
        for true in job.moments:
            straight = job.clocks[rank].show(true) - clock.offset_ns
            common = straight - clock.drift * (straight - (clock.middle_ns - job.start_unix_ns))
            worst = max(worst, abs(common - first.show(true)))
    return round(worst)


def _bus_error(job: Job, found: Compared) -> float | None:
    """The bandwidth of every matched transfer against the formula on what was simulated."""
    if not job.spent_ns:
        return None
    worst = 0.0
    for row in found.meetings.filter(found.meetings["place"] < 0).iter_rows(named=True):
        spent = job.spent_ns[row["group"], row["number"]][row["last_rank"]]
        worst = max(worst, abs(row["transfer_ns"] / spent - 1), abs(row["bytes"] / (4 * ELEMENTS) - 1))
    return worst


@dataclass(frozen=True)
class Row:
    """What is reported of one random job; small, since it travels between processes."""

    kind: str
    right: bool
    right_cause: bool
    clock_error_ns: int
    residual_ns: int
    stated_ns: int
    bus_error: float | None
    cost: float
    share: float  # of the time, by the finding
    text: str


@dataclass(frozen=True)
class Wanted:
    """The job of this number in a run; `ranks` is for models that take it."""

    model: str
    run: int
    number: int
    kind: str
    ranks: int


def scored(wanted: Wanted) -> Row:
    """A random job in which the late rank costs at least `LEAST_COST`, or none is late."""
    job = _drawn(MODELS[wanted.model], wanted)
    found = score(job)
    verdict = f"{found.kind} {found.ranks} {found.cause} {found.share:.1%}"
    return Row(
        kind=wanted.kind,
        right=found.right,
        right_cause=found.right_cause,
        clock_error_ns=found.clock_error_ns,
        residual_ns=found.residual_ns,
        stated_ns=found.stated_ns,
        bus_error=found.bus_error,
        cost=job.cost,
        share=found.share,
        text=f"{job.case} costs {job.cost:.1%} -> {verdict}, clocks {found.clock_error_ns} ns, stated {found.stated_ns} ns",
    )


def _drawn(model: Model, wanted: Wanted) -> Job:
    for attempt in range(model.attempts):
        sequence = np.random.SeedSequence((wanted.run, wanted.number, attempt))
        job = model.draw(int(sequence.generate_state(1)[0]), wanted.kind, wanted.ranks)
        if wanted.kind == "healthy" or job.cost >= LEAST_COST:
            break
    return job
