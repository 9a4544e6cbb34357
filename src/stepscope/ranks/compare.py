"""Many ranks put together, in stages that each need little: what a rank reports, what follows from all, what it then sees.

1. each rank: `look` — how many calls it made, some ends of calls for the clocks, how its steps went;
2. all together: `plan` — the clocks, and which calls can be matched;
3. each rank: `meet` — its arrivals; put together pairwise within each process group, in any order, by `joined_meetings`, and reduced;
4. each rank: `wait` — for which ranks it waited, by the meetings of its groups. `compared` draws the conclusions.
Only what stages 1 and 4 give, and what meetings are reduced to, leaves the processes that read ranks. `compare` does it all in one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.arrivals import (
    arrivals,
    comparable,
    finished,
    joined_meetings,
    meetings,
    waits,
)
from stepscope.ranks.by_role import by_replay, straggler_by_role
from stepscope.ranks.calls.matching import (
    KEY,
    KEYED,
    added_counts,
    counts,
    keyed,
    matchable,
    only_usual,
    unusual,
    usual,
)
from stepscope.ranks.calls.unnamed_groups import Leaders, by_group, told_apart
from stepscope.ranks.clocks.offsets import ANCHORS, Clock, anchors, fit_clocks
from stepscope.ranks.clocks.shared import Machine
from stepscope.ranks.job.answers import JobAnswers, answers
from stepscope.ranks.job.course import Course
from stepscope.ranks.job.gathered import PackedCourse
from stepscope.ranks.job.what_if import BATCHES, EXPERTS, RANK
from stepscope.ranks.meetings import OPERATION, Group, Met, groups_of, reduce_meetings
from stepscope.ranks.stragglers.find import Straggler, straggler
from stepscope.ranks.stragglers.kernel_work import calls_more, computes_on_more, ratios
from stepscope.ranks.stragglers.lateness import lateness, on_host
from stepscope.ranks.stragglers.pace import Pace
from stepscope.ranks.stragglers.unrecorded import without_recorder
from stepscope.registers.policy.ranks import SAME_MOMENT
from stepscope.trace.frames import conform

WAITS = {"rank": pl.Int32, "last_rank": pl.Int32, "name": pl.String, "wait_ns": pl.Int64, "calls": pl.Int64}
MARGINS = {"rank": pl.Int32, "step": pl.Int32, "margin_ns": pl.Int64}
HISTOGRAM = {name: KEYED[name] for name in OPERATION} | {"bin": pl.Int32, "arrivals": pl.Int64}
ARRIVALS = {name: KEYED[name] for name in KEY} | {
    "rank": pl.Int32,
    "arrival_ns": pl.Int64,
    "dur_ns": pl.Int64,
}


@dataclass(frozen=True)
class Calls:
    """One rank's collectives in common time as recorded; `rows` as of `keyed`."""

    rank: int
    rows: pl.DataFrame
    pace: Pace
    machine: Machine | None = None
    course: Course | None = None


@dataclass(frozen=True)
class Look:
    """What a rank reports before the others are known."""

    rank: int
    counts: pl.DataFrame
    anchors: pl.DataFrame
    lanes: pl.DataFrame
    pace: Pace
    machine: Machine | None = None
    course: Course | PackedCourse | None = None


@dataclass(frozen=True)
class Plan:
    """What follows from all looks: clocks, the usual number of calls, the lanes whose clocks agree, and groups without a name."""

    clocks: dict[int, Clock]
    usual: pl.DataFrame
    unusual: pl.DataFrame
    by_clock: list[int]
    leaders: Leaders
    groups: list[Group] = field(default_factory=list)


@dataclass(frozen=True)
class Waited:
    """What a rank saw of the others: sums of its waits by the rank waited for, how late it was itself, arrivals at the worst."""

    rank: int
    matched: int
    last: int
    late_ns: int
    wait_ns: int
    waits: pl.DataFrame
    margins: pl.DataFrame
    arrivals: pl.DataFrame
    histogram: pl.DataFrame


@dataclass(frozen=True)
class Compared:
    """All ranks together; `meetings` are all of them where that was asked for, else those with the longest waits."""

    clocks: dict[int, Clock]
    met: Met
    unusual: pl.DataFrame
    ranks: list[Waited]
    late: pl.DataFrame
    straggler: Straggler | None
    meetings: pl.DataFrame
    looks: Sequence[Look] = ()
    job: JobAnswers | None = None


def calls_of(
    calls: pl.DataFrame,
    rank: int,
    pace: Pace,
    shift_ns: int = 0,
    drift: float = 0.0,
    machine: Machine | None = None,
    course: Course | None = None,
    keys: pl.DataFrame | None = None,
) -> Calls:
    """The rank's calls, moved to common time by what was recorded of its clock; `keys` as of `keyed`, where they are known already."""
    rows = keyed(calls, rank) if keys is None else keys
    rows = rows.with_columns(pl.col("start_ns") + shift_ns)
    if drift and len(rows):
        first = pl.col("start_ns") - pl.col("start_ns").min()
        rows = rows.with_columns(
            start_ns=pl.col("start_ns") + (first.cast(pl.Float64) * drift).round().cast(pl.Int64)
        )
    return Calls(rank, rows, pace, machine, course)


def look(calls: Calls) -> Look:
    """Stage 1."""
    lanes = calls.rows.select("rank", "lane", "stream").unique("lane").sort("lane")
    return Look(
        calls.rank, counts(calls.rows), anchors(calls.rows), lanes, calls.pace, calls.machine, calls.course
    )


def without_anchors(look: Look) -> Look:
    """What is left to be known once clocks are: there are as many anchors as calls."""
    return replace(look, anchors=look.anchors.clear())


def plan(looks: Sequence[Look]) -> Plan:
    """Stage 2."""
    counted = added_counts([each.counts for each in looks])
    most = usual(counted)
    machines = {each.rank: each.machine for each in looks}
    ends = _ends([each.anchors for each in looks], most)
    leaders = told_apart(ends)
    clocks = fit_clocks(by_group(ends, leaders, "key"), list(machines), machines)
    lanes = {each.rank: by_group(each.lanes, leaders, "lane")["lane"].to_list() for each in looks}
    return Plan(clocks, most, unusual(counted), comparable(lanes, clocks), leaders, groups_of(lanes))


def clocks_by_calls(
    calls: Mapping[int, pl.DataFrame], machines: Mapping[int, Machine | None]
) -> dict[int, Clock]:
    """Only the clocks, from the rows of `keyed` of each rank."""
    most = usual(added_counts([counts(rows) for rows in calls.values()]))
    ends = _ends([anchors(rows) for rows in calls.values()], most)
    return fit_clocks(by_group(ends, told_apart(ends), "key"), list(calls), machines)


def _ends(frames: Sequence[pl.DataFrame], most: pl.DataFrame) -> pl.DataFrame:
    return only_usual(pl.concat([pl.DataFrame(schema=ANCHORS), *frames]), most)


def meet(calls: Calls, plan: Plan) -> pl.DataFrame:
    """Stage 3."""
    return meetings(_arrived(calls, plan))


def wait(calls: Calls, plan: Plan, found: pl.DataFrame, longest: pl.DataFrame) -> Waited:
    """Stage 4; `found` are the finished meetings, at least those of this rank, and `longest` the worst of all."""
    rows = waits(_arrived(calls, plan), found)
    mine = rows["last_rank"] == calls.rank
    others = rows.filter(~mine).group_by("rank", "last_rank", "name")
    summed = others.agg(pl.col("wait_ns").sum(), calls=pl.len()).sort(
        "wait_ns", "last_rank", "name", descending=[True, False, False]
    )
    seen = rows.join(longest, on=KEY, how="semi")
    return Waited(
        rank=calls.rank,
        matched=len(rows),
        last=int((mine & (rows["late_ns"] > 0)).sum()),
        late_ns=int(rows["late_ns"].sum()),
        wait_ns=int(rows["wait_ns"].sum()),
        waits=conform(summed, WAITS),
        margins=_margins(rows),
        arrivals=conform(seen, ARRIVALS),
        histogram=_histogram(rows),
    )


def _histogram(rows: pl.DataFrame) -> pl.DataFrame:
    """How many arrivals waited how long, for each operation."""
    found = rows.group_by(*OPERATION, bin=bin_of("wait_ns")).agg(arrivals=pl.len())
    return conform(found, HISTOGRAM).sort(*HISTOGRAM)


def bin_of(column: str) -> pl.Expr:
    """0 below a microsecond, then one bin for each doubling."""
    microseconds = (pl.col(column) // 1000).cast(pl.Float64)
    return pl.when(microseconds < 1).then(0).otherwise(microseconds.log(2).floor() + 1).cast(pl.Int32)


def compared(
    looks: Sequence[Look],
    plan: Plan,
    met: Met,
    ranks: Sequence[Waited],
    meetings: pl.DataFrame | None = None,
) -> Compared:
    """The conclusions; `meetings` are passed on."""
    steps, parts, did = (
        pl.concat([getattr(each.pace, name) for each in looks]) if looks else pl.DataFrame()
        for name in ("steps", "parts", "did")
    )
    margins = pl.concat([pl.DataFrame(schema=MARGINS), *(each.margins for each in ranks)])
    clocks_mhz = {each.rank: each.pace.clock_mhz for each in looks}
    job = answers([each.course for each in looks if each.course is not None], plan.leaders)
    late = _late_by_role(steps, parts, margins, job)
    waited_for = None
    if job is not None and job.is_faithful and job.roles.stages > 1:
        # Stages do different work at different times: only ranks of one stage can be compared.
        waited_for = straggler_by_role(job, steps, parts, clocks_mhz, did)
    elif met.count and not _of_experts(job):  # a rank that shares no collective keeps none waiting
        hosts_meet = on_host(parts)
        waited_for = by_replay(straggler(late, steps, parts, clocks_mhz, did), job, hosts_meet)
        if waited_for is None and job is not None and not hosts_meet and _shows_straggler(job):
            waited_for = straggler_by_role(job, steps, parts, clocks_mhz, did)
    if waited_for is not None:
        kernels = pl.concat(
            [each.pace.kernels for each in looks if _is_peer(each.rank, waited_for.rank, job)]
        )
        waited_for = replace(waited_for, kernels=ratios(kernels, waited_for.rank))
        called = pl.concat([each.pace.called for each in looks])
        if waited_for.cause == "host_compute" and _has_more_work(called, kernels, waited_for.rank):
            waited_for = replace(waited_for, cause="work")
        if on_host(parts):
            waited_for = without_recorder(waited_for, [each.pace for each in looks])
    shown = met.worst if meetings is None else meetings
    return Compared(plan.clocks, met, plan.unusual, list(ranks), late, waited_for, shown, looks, job)


def _has_more_work(called: pl.DataFrame, kernels: pl.DataFrame, rank: int) -> bool:
    """By its calls; by how long they take only where no shapes say how much each of them has to do."""
    has_shapes = bool((kernels["blocks"] != 1).any())
    return calls_more(called, rank) or (not has_shapes and computes_on_more(called, rank))


def _late_by_role(
    steps: pl.DataFrame, parts: pl.DataFrame, margins: pl.DataFrame, job: JobAnswers | None
) -> pl.DataFrame:
    """`lateness` of each rank against those of its stage; against all where there are no stages."""
    if job is None or job.roles.stages < 2:
        return lateness(steps, parts, margins)
    stages: dict[int, list[int]] = {}
    for rank, stage in job.roles.stage.items():
        stages.setdefault(stage, []).append(rank)
    return pl.concat(
        lateness(*(table.filter(pl.col("rank").is_in(ranks)) for table in (steps, parts, margins)))
        for ranks in stages.values()
    )


def _is_peer(rank: int, other: int, job: JobAnswers | None) -> bool:
    """Whether they have the same to do: other stages of a pipeline launch other kernels."""
    if job is None or job.roles.stages < 2:
        return True
    return job.roles.stage.get(rank) == job.roles.stage.get(other)


def _shows_straggler(job: JobAnswers) -> bool:
    """Whether ranks are slow from some step on, or have more to do in some: waits alone do not show that of few steps."""
    return any(
        cause.kind == BATCHES or (cause.kind == RANK and cause.since is not None) for cause in job.causes
    )


def _of_experts(job: JobAnswers | None) -> bool:
    """Whether ranks are late because of their experts, which is a finding of its own."""
    return job is not None and any(cause.kind == EXPERTS for cause in job.causes)


def compare(ranks: Mapping[int, Calls]) -> Compared:
    """All stages, here."""
    looks = [look(calls) for calls in ranks.values()]
    agreed = plan(looks)
    found = joined_meetings([meet(calls, agreed) for calls in ranks.values()])
    done, met = finished(found), reduce_meetings(found)
    waited = [wait(calls, agreed, done, met.worst) for calls in ranks.values()]
    return compared(looks, agreed, met, waited, done)


def _arrived(calls: Calls, plan: Plan) -> pl.DataFrame:
    rows = by_group(matchable(calls.rows, plan.usual), plan.leaders, "lane")
    return arrivals(rows, plan.clocks[calls.rank], plan.by_clock)


def _margins(rows: pl.DataFrame) -> pl.DataFrame:
    """By how much the rank came last, in each step. Calls that the others wait in at the same time are one delay: the most counts.

    The others wait from the second last arrival to the last. DDP calls all its buckets before it waits for the first: there the
    waits for one late rank overlap, though its own calls, for which all others are ready, run one after the other.
    """
    calls = rows.drop_nulls("step").select("step", "late_ns", last=pl.col("start_ns") + pl.col("held_ns"))
    sums: dict[int, int] = dict.fromkeys(calls["step"].unique().sort().to_list(), 0)
    waits = calls.filter(pl.col("late_ns") > 0).with_columns(since=pl.col("last") - pl.col("late_ns"))
    until, most = None, 0
    for step, late, last, since in waits.sort("since", "last").iter_rows():
        if until is None or until - since <= SAME_MOMENT * min(late, most):
            until, most = last, 0
        until = max(until, last)
        sums[step] += max(0, late - most)
        most = max(most, late)
    rank = rows["rank"][0] if len(rows) else 0
    data = [(rank, step, margin) for step, margin in sums.items()]
    return pl.DataFrame(data, schema=MARGINS, orient="row")
