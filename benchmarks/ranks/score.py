"""How well a synthetic profile was read: clocks, who is late, of which kind and why, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from benchmarks.ranks.base import Base, base
from benchmarks.ranks.case import Case, random_case
from benchmarks.ranks.make import ELEMENTS, START_UNIX_NS, traces
from benchmarks.ranks.simulate import Simulated, simulate
from stepscope.across.ranks import Calls, Compared, compare
from stepscope.analysis.collective_calls import collective_calls
from stepscope.report.options import Options
from stepscope.report.rank import RankContext
from stepscope.report.sections.collectives import rank_calls

CLOCK_ERROR_NS = 20_000


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
    simulated = simulate(case, _base(case.source, case.steps))
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
    )


@cache
def _base(source: str, steps: int) -> Base:
    return base(source, steps)


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
            common = shown - clock.offset_ns - clock.drift * (shown - (clock.middle_ns - START_UNIX_NS))
            worst = max(worst, abs(common - wanted))
    return round(worst)


def _bus_error(simulated: Simulated, found: Compared) -> float:
    """The bandwidth of every matched transfer against the formula on what was simulated."""
    true = {(meeting.group, meeting.sequence): meeting for meeting in simulated.meetings}
    worst = 0.0
    for row in found.meetings.filter(found.meetings["place"] < 0).iter_rows(named=True):
        meeting = true[row["group"], row["number"]]
        place = int(meeting.arrival.argmax())
        if int(meeting.members[place]) in simulated.case.missing:
            continue  # the last to come was not recorded
        spent = float(meeting.end[place] - meeting.arrival[place])
        worst = max(worst, abs(row["transfer_ns"] / spent - 1), abs(row["bytes"] / (4 * ELEMENTS) - 1))
    return worst


Row = tuple[str, bool, bool, int, float, str]


def scored(wanted: tuple[int, str, int]) -> Row:
    """What is told of one random case; small, since it travels between processes."""
    seed, kind, ranks = wanted
    found = score(random_case(seed, kind, ranks))
    text = f"{found.case} -> {found.kind} {found.ranks} {found.cause}"
    return kind, found.right, found.right_cause, found.clock_error_ns, found.bus_error, text
