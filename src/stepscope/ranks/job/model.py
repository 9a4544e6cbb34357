"""The job of all ranks as one graph: their work, their calls, and which calls are one meeting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.calls.matching import KEY
from stepscope.ranks.calls.unnamed_groups import Leaders, by_group
from stepscope.ranks.job.course import TIMES, Course
from stepscope.ranks.job.gathered import Gathered, PackedCourse, gather
from stepscope.ranks.job.graph import JobGraph
from stepscope.ranks.job.roles import Roles, roles_of, with_partners
from stepscope.registers.policy.job import COURSES_AT_ONCE, JOB_REPLAY_ERROR, STANDS_STILL
from stepscope.trace.frames import take_largest

NODES = {
    "rank": pl.Int32,
    "stage": pl.Int32,
    "step": pl.Int32,
    "segment": pl.Int32,
    **dict.fromkeys(TIMES, pl.Int64),
    "name": pl.String,  # of a call; null for work
    "ranks_of": pl.UInt32,  # which of the model's `groups`
    "group_size": pl.Int32,
    "bytes": pl.Int64,
    "meeting": pl.Int64,
    "waits": pl.Boolean,  # of a call: whether the rank stood still until it ended
    "ns": pl.Int64,
}
_PAIRED = ("send", "recv", "send_recv")
_OF_WORK = ("rank", "stage", "step", *TIMES, "ns")
_OF_SEGMENTS = ("rank", "stage", "step", "name", "group_size", "ranks_of", "waits")
_ROLE = ("stage", "name", "group_size", "often")
# What meetings and nodes want of a call.
_OF_CALLS = (
    *KEY, "rank", "name", "group_size", "group_ranks", "peer", "bytes", "step", "launched_in", "dur_ns", "stream"
)  # fmt: skip


@dataclass(frozen=True)
class JobModel:
    """`graph.nodes`: NODES; work first, then calls. `recorded_ns`: the mean step of the recordings."""

    graph: JobGraph
    roles: Roles
    hosts: dict[int, str | None]
    recorded_ns: float
    did: pl.DataFrame  # rank, stage, step, input_ns, host_ns: what hosts did, seen or not
    groups: list[str]  # the ranks of groups, as profiles give them

    @property
    def nodes(self) -> pl.DataFrame:
        """All work and all calls."""
        return self.graph.nodes

    @property
    def calls(self) -> pl.DataFrame:
        """The calls with their row in the graph; not a copy, as a filter's would be."""
        return self.nodes.with_row_index("row").slice(self._work_count)

    @property
    def _work_count(self) -> int:
        return self.nodes["name"].null_count()

    @cached_property
    def base(self) -> pl.DataFrame:
        """step, ns: the steps replayed as recorded."""
        return self.lengths()

    @cached_property
    def work(self) -> pl.DataFrame:
        """The work with its row in the graph, and `turn`: how many calls of the step have begun.

        `segment` counts only those that the rank stands still for: others begin sooner or later beside the work, and what follows them is
        not the same on all ranks. It counts those that are still to come, for a step may begin with the last call of the one before.
        Where ranks of a stage differ even so, a step is one segment, which is not compared with parts of other steps.
        """
        rows = (
            self.nodes.with_row_index("row").head(self._work_count).select("row", *_OF_WORK, turn="segment")
        )
        return rows.with_columns(_segments(rows.select("rank", "stage", "step", "turn"), self.calls))

    @cached_property
    def totals(self) -> pl.DataFrame:
        """stage, step, rank and TIMES: all work of a rank in a step."""
        batches = (work for work, _ in _in_batches(self.work, self.calls))
        return pl.concat(each.group_by("stage", "step", "rank").agg(pl.col(*TIMES).sum()) for each in batches)

    @property
    def is_faithful(self) -> bool:
        """Whether the replay of the unchanged job takes as long as the job did; else its other answers are worth nothing."""
        if not self.graph.is_complete or not self.recorded_ns or self.base.is_empty():
            return False
        return abs(mean_ns(self.base) / self.recorded_ns - 1) <= JOB_REPLAY_ERROR

    def lengths(self, ns: pl.Series | None = None) -> pl.DataFrame:
        """step, ns: from the end of one step to that of the next, on the last rank of each."""
        _, end = self.graph.play(ns)
        ends = (
            pl.DataFrame({"step": self.nodes["step"], "end": end}).group_by("step").agg(pl.col("end").max())
        )
        ends = ends.sort("step")
        return ends.select("step", ns=pl.col("end") - pl.col("end").shift(1, fill_value=0))


def mean_ns(lengths: pl.DataFrame) -> float:
    """The mean of the steps."""
    return cast("float", lengths["ns"].mean() or 0.0)


def job_model(courses: Sequence[Course | PackedCourse], leaders: Leaders | None = None) -> JobModel | None:
    """The job of these ranks; None where none of them meets another."""
    job = gather(courses)
    if len(job.ranks) < 2:
        return None
    roles = roles_of(job.ranks, job.calls)
    stages = list(roles.stage), list(roles.stage.values())
    stage = pl.col("rank").replace_strict(*stages, default=0, return_dtype=pl.Int32).alias("stage")
    calls = job.calls.select(*_OF_CALLS, stage, waits=pl.col("resumes").is_not_null())
    meetings = _with_meetings(by_group(calls, leaders or {}, "lane"))
    if not meetings["meeting"].count():
        return None
    groups = job.calls["group_ranks"].drop_nulls().unique().to_list()
    numbers = pl.Series(range(len(groups)), dtype=pl.UInt32)
    which = pl.col("group_ranks").replace_strict(groups, numbers, default=None, return_dtype=pl.UInt32)
    meetings = meetings.with_columns(ranks_of=which)
    nodes = pl.concat([_of_work(job.work.with_columns(stage)), meetings.select(_of_schema(meetings))])
    did = job.did.with_columns(stage)
    return JobModel(JobGraph(nodes, _edges(job)), roles, job.hosts, job.step_ns, did, groups)


def _segments(work: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """The segment of each row of work; some ranks at a time, for there are as many rows as calls of all ranks."""
    batches = _in_batches(work, calls.select(_OF_SEGMENTS))
    # Calls of one role are known by their operation and size of group, and by how many there are in a step.
    counts = [_often(mine).group_by(_ROLE).agg(pl.col("waits").sum(), calls=pl.len()) for _, mine in batches]
    sums = pl.concat(counts).group_by(_ROLE).agg(pl.col("waits").sum(), pl.col("calls").sum())
    stops = sums.select(*_ROLE, stops=(pl.col("waits") / pl.col("calls") >= STANDS_STILL).cast(pl.Int32))
    rows = [_divided(mine, _counted(made, stops)) for mine, made in batches]
    last = [each.group_by("stage", "step", "rank").agg(last=pl.col("segment").max()) for each in rows]
    uneven = pl.concat(last).group_by("stage", "step").agg(uneven=pl.col("last").n_unique() > 1)
    return pl.concat(_unless_uneven(each, uneven) for each in rows)


def _unless_uneven(rows: pl.DataFrame, uneven: pl.DataFrame) -> pl.Series:
    """A step that is not divided has a segment of its own, and is not compared with the parts of others."""
    marked = rows.join(uneven, on=["stage", "step"], how="left", maintain_order="left")
    segment = pl.when("uneven").then(-1).otherwise("segment").cast(pl.Int32)
    return marked.select(segment=segment).to_series()


def _in_batches(work: pl.DataFrame, calls: pl.DataFrame) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """The work and the calls of some ranks each; both have one rank after the other, in the same order."""
    counts = work.group_by("rank", maintain_order=True).len("work")
    counts = counts.join(calls.group_by("rank").len("calls"), on="rank", how="left", maintain_order="left")
    counts = counts.select(pl.col("work", "calls").fill_null(0).cast(pl.Int64))
    batches, first_work, first_call = [], 0, 0
    for at in range(0, len(counts), COURSES_AT_ONCE):
        works, made = counts.slice(at, COURSES_AT_ONCE).sum().row(0)
        batches.append((work.slice(first_work, works), calls.slice(first_call, made)))
        first_work, first_call = first_work + works, first_call + made
    return batches


def _divided(work: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """rank, stage, step, segment."""
    rows = work.join(counted, on=["rank", "step", "turn"], how="left", maintain_order="left")
    segment = pl.col("segment").fill_null(0)
    return rows.select("rank", "stage", "step", segment=segment.max().over("rank", "step") - segment)


def _often(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.with_columns(often=pl.len().over("rank", "step", "name", "group_size", "ranks_of"))


def _counted(calls: pl.DataFrame, stops: pl.DataFrame) -> pl.DataFrame:
    """rank, step, turn, segment: of the first calls of a step, how many are such as ranks stand still for."""
    rows = _often(calls).join(stops, on=_ROLE, how="left", nulls_equal=True, maintain_order="left")
    return rows.select(
        "rank",
        "step",
        turn=pl.int_range(1, pl.len() + 1).over("rank", "step").cast(pl.Int32),
        segment=pl.col("stops").cum_sum().over("rank", "step"),
    )


def _of_work(work: pl.DataFrame) -> pl.DataFrame:
    work = work.with_columns(ns=pl.sum_horizontal(*TIMES))
    return work.select(_of_schema(work))


def _of_schema(frame: pl.DataFrame) -> list[pl.Expr]:
    return [
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in NODES.items()
    ]


def _edges(job: Gathered) -> pl.DataFrame:
    """before, after: work in a row, what a call comes after, what resumes after it, and calls of one stream."""
    work = job.work.select("rank", before=pl.int_range(pl.len(), dtype=pl.UInt32))
    chain = work.filter(pl.col("rank") == pl.col("rank").shift(-1))
    call = (pl.int_range(pl.len(), dtype=pl.UInt32) + len(work)).cast(pl.UInt32)
    calls, of_work, of_call = job.calls, pl.col("first_work"), pl.col("first_call") + len(work)
    frames = [
        chain.select("before", after=pl.col("before") + 1),
        calls.select(before=pl.col("after") + of_work, after=call),
        calls.select(before=call, after=pl.col("resumes") + of_work),
        calls.select(before=pl.col("behind") + of_call, after=call),
        calls.select(before=pl.col("follows") + of_call, after=call),
    ]
    return pl.concat(frame.drop_nulls().cast(pl.UInt32) for frame in frames)


def _with_meetings(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with the number of their meeting, null for those that met no other, and the time of its transfer.

    The last to come does not wait: its time in the call is that of the transfer, and the shortest of all.
    """
    rows = calls.with_row_index("row")
    collective, paired = _collective(rows), _paired(rows)
    pairs = pl.col("key").rank("dense").cast(pl.Int64) + take_largest(collective["meeting"])
    numbered = pl.concat([collective, paired.select("row", meeting=pairs)])
    found = rows.select("row").join(numbered, on="row", how="left", maintain_order="left")
    rows = rows.with_columns(found["meeting"])
    shortest = pl.col("dur_ns").min().over("meeting")
    ns = pl.when(pl.col("meeting").is_null()).then("dur_ns").otherwise(shortest)
    return rows.with_columns(ns=ns)


def _collective(rows: pl.DataFrame) -> pl.DataFrame:
    """row, meeting: of calls that several ranks made, each of them once, and not more of them than the group has."""
    known = rows.select("row", *KEY, "rank", "name", "group_size").drop_nulls("lane")
    known = known.filter(~pl.col("name").is_in(_PAIRED)).drop("name")
    met = known.group_by(KEY, maintain_order=True).agg("row", "group_size", ranks=pl.col("rank").n_unique())
    met = met.filter(pl.col("ranks") > 1, pl.col("ranks") == pl.col("row").list.len())
    fits = pl.col("group_size").is_null() | (pl.col("ranks") <= pl.col("group_size"))
    met = met.select("row", "group_size", "ranks", meeting=pl.int_range(1, pl.len() + 1))
    return met.explode("row", "group_size").filter(fits).select("row", "meeting")


def _paired(rows: pl.DataFrame) -> pl.DataFrame:
    """row, key: of sends and receives, matched in order, in steps in which both ends have as many."""
    paired = with_partners(rows.filter(pl.col("name").is_in(_PAIRED)))
    sends, receives = pl.col("name") == "send", pl.col("name") == "recv"
    source = (
        pl.when(sends)
        .then("rank")
        .when(receives)
        .then("partner")
        .otherwise(pl.min_horizontal("rank", "partner"))
    )
    target = (
        pl.when(sends)
        .then("partner")
        .when(receives)
        .then("rank")
        .otherwise(pl.max_horizontal("rank", "partner"))
    )
    paired = paired.with_columns(source=source, target=target, directed=sends | receives)
    way = ["source", "target", "directed"]
    paired = paired.with_columns(asked=pl.coalesce("launched_in", "step"))
    paired = paired.with_columns(turn=pl.int_range(pl.len()).over(*way, "asked", "rank"))
    both = (pl.col("rank").n_unique().over(*way, "asked", "turn") == 2) & (
        (pl.len().over(*way, "asked", "rank") * 2) == pl.len().over(*way, "asked")
    )
    key = pl.concat_str(pl.lit("p"), *way, "asked", "turn", separator=" ")
    return paired.filter(both).select("row", key=key)
