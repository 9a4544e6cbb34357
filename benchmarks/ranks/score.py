"""How well a synthetic profile was read: clocks, who is late, of which kind and why, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ranks.base import base_of
from benchmarks.ranks.case import Case, random_case
from benchmarks.ranks.make import ELEMENTS, START_UNIX_NS, traces
from benchmarks.ranks.simulate import Simulated, cost, simulate
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.ranks.compare import Calls, Compared, compare
from stepscope.reports.sections.collectives import rank_calls

CLOCK_ERROR_NS = 20_000
# Of the job's time, by a simulation of the same without anybody late; the finding wants 3 %.
LEAST_COST = 0.04


@dataclass(frozen=True)
class Score:
    """What was found, beside what is true."""

    case: Case
    clock_error_ns: int  # the worst rank's, at the beginning, the middle or the end
    residual_ns: int  # the worst that was stated
    kind: str
    ranks: tuple[int, ...]
    cause: str | None
    bus_error: float  # of the bus bandwidth, relative
    share: float  # of the time, as told

    @property
    def right(self) -> bool:
        """Whether the rank and the kind are named; in a healthy profile, whether nobody is."""
        if self.case.rank is None:
            return self.kind == self.case.kind
        return self.kind == self.case.kind and self.ranks == (self.case.rank,)

    @property
    def right_cause(self) -> bool:
        """Whether the part that makes it late is named too."""
        return self.right and self.cause == self.case.cause


def score(case: Case) -> Score:
    """Make the profile, read it, compare."""
    simulated = simulate(case, base_of(case.source, case.steps))
    found = compare(dict(_read(simulated)))
    late = found.straggler
    return Score(
        case=case,
        clock_error_ns=clock_error_ns(simulated, found),
        residual_ns=max(clock.residual_ns or 0 for clock in found.clocks.values()),
        kind=late.kind if late else "healthy",
        ranks=late.ranks if late else (),
        cause=late.cause if late else None,
        bus_error=_bus_error(simulated, found),
        share=late.share if late else 0.0,
    )


def _read(simulated: Simulated) -> list[tuple[int, Calls]]:
    contexts = ((rank, RankContext(rank, trace, Options())) for rank, trace in traces(simulated))
    return [
        (rank, rank_calls(context, collective_calls(context.trace, context.account)))
        for rank, context in contexts
    ]


def clock_error_ns(simulated: Simulated, found: Compared) -> int:
    """How far times of any rank are from those of the first, after the clocks were aligned."""
    first = min(found.clocks)
    end = max(float(meeting.end.max()) for meeting in simulated.meetings)
    worst = 0.0
    for rank, clock in found.clocks.items():
        for true in (0.0, end / 2, end):
            shown, wanted = (
                true * (1 + simulated.drift[each]) + simulated.offset[each] for each in (rank, first)
            )
            straight = shown - clock.offset_ns
            common = straight - clock.drift * (straight - (clock.middle_ns - START_UNIX_NS))
            worst = max(worst, abs(common - wanted))
    return round(worst)


def _bus_error(simulated: Simulated, found: Compared) -> float:
    """The bandwidth of every matched transfer against the formula on what was simulated."""
    true = {(meeting.group, meeting.sequence): meeting for meeting in simulated.meetings}
    worst = 0.0
    for row in found.meetings.filter(found.meetings["place"] < 0).iter_rows(named=True):
        meeting = true[row["group"], row["number"]]
        place = int(np.searchsorted(meeting.members, row["last_rank"]))
        spent = float(meeting.end[place] - meeting.arrival[place])
        worst = max(worst, abs(row["transfer_ns"] / spent - 1), abs(row["bytes"] / (4 * ELEMENTS) - 1))
    return worst


@dataclass(frozen=True)
class Row:
    """What is told of one random case; small, since it travels between processes."""

    kind: str
    right: bool
    right_cause: bool
    clock_error_ns: int
    residual_ns: int
    bus_error: float
    cost: float
    told: float  # the share that the finding tells
    text: str


def scored(wanted: tuple[int, int, str, int]) -> Row:
    """A random case of a run of cases: who is late costs at least `LEAST_COST`, or he is none."""
    run, number, kind, ranks = wanted
    for attempt in range(100):
        case = random_case(
            int(np.random.SeedSequence((run, number, attempt)).generate_state(1)[0]), kind, ranks
        )
        lost = 0.0 if kind == "healthy" else cost(case, base_of(case.source, case.steps))
        if kind == "healthy" or lost >= LEAST_COST:
            break
    found = score(case)
    return Row(
        kind=kind,
        right=found.right,
        right_cause=found.right_cause,
        clock_error_ns=found.clock_error_ns,
        residual_ns=found.residual_ns,
        bus_error=found.bus_error,
        cost=lost,
        told=found.share,
        text=f"{found.case} costs {lost:.1%} -> {found.kind} {found.ranks} {found.cause} {found.share:.1%}",
    )
