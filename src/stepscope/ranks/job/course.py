"""What one rank does between its communications: the part of a job's graph that only the rank itself knows.

The time of a rank on its critical device is cut wherever a call begins, and wherever the rank had waited for one that ends.
Between two cuts it works; time in which it only waits for communication does not count, and follows again when the job is replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from stepscope.ranks.calls.matching import KEY, KEYED, keyed, keyed_events
from stepscope.ranks.stragglers.lateness import COLLECTIVE
from stepscope.registers.policy.job import BETWEEN_CALLS_NS, MOST_REPLAYED_CALLS, SAME_END_NS
from stepscope.trace.frames import conform, take

WORK = {
    "node": pl.Int64,
    "step": pl.Int32,
    "segment": pl.Int32,  # how many calls of the step have begun before it
    "compute_ns": pl.Int64,
    "input_ns": pl.Int64,
    "host_ns": pl.Int64,
}
CALLS = {name: KEYED[name] for name in KEY} | {
    "rank": pl.Int32,
    "name": pl.String,
    "group": pl.String,
    "group_size": pl.Int32,
    "group_ranks": pl.String,
    "peer": pl.Int32,
    "bytes": pl.Int64,
    "step": pl.Int32,  # in which it begins
    "launched_in": pl.Int32,
    "dur_ns": pl.Int64,
    "stream": pl.Int32,  # where the group has no name; else null
    "after": pl.Int64,  # the work that is over when the rank arrives
    "resumes": pl.Int64,  # the work that waits for the call; null where the rank works on meanwhile
    "behind": pl.Int64,  # the call before it on its stream
    "follows": pl.Int64,  # a call that the rank waited for until the very moment at which it made this one
}
TIMES = ("compute_ns", "input_ns", "host_ns")
BY_HOST = ("input_ns", "host_ns")
DID = {"step": pl.Int32, **dict.fromkeys(BY_HOST, pl.Int64)}
_ON_DEVICE = ("compute", "host_compute", "copy")
_INPUT, _UNRECORDED = "input", "unrecorded"
BUSY_HOST = (_INPUT, "python", "dispatch", "allocator", "io", "compile", "unexplained")


@dataclass(frozen=True)
class Course:
    """`work`: WORK, one row after the other; `calls`: CALLS, in the order of their arrivals. `host` is the machine's name.

    `did`: DID, what the host did in each step, whether the device waited for it or not; empty where that is not known.
    """

    rank: int
    work: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=WORK))
    calls: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CALLS))
    host: str | None = None
    did: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DID))
    step_ns: float = 0.0  # the mean of the steps that `work` is of


def course_of(
    calls: pl.DataFrame,
    slices: pl.DataFrame,
    windows: pl.DataFrame,
    rank: int,
    host: str | None = None,
    did: pl.DataFrame | None = None,
    world: int | None = None,
) -> Course:
    """Of `collective_calls`, what the host `did` (see `pace`), and the account's slices and the windows of the rank's critical device."""
    ordered = windows.select("step", "start_ns", "end_ns").drop_nulls().sort("start_ns")
    windows = _last_steps(ordered, calls, world or 1)
    if windows.is_empty():
        return Course(rank, host=host)
    low, high = windows["start_ns"][0], windows["end_ns"][-1]
    slices = slices.filter(pl.col("start_ns") >= low, pl.col("end_ns") <= high)
    # Before the first step the device does what was launched before the recording: nothing is known of that.
    is_unknown = pl.col("part").cast(pl.String) == _UNRECORDED
    unknown_ns = slices.filter(is_unknown).select((pl.col("end_ns") - pl.col("start_ns")).sum()).item()
    slices = slices.filter(~is_unknown)
    made = _with_arrivals(calls).with_columns(launched_in="step")
    # A stage begins its first step when the first micro-batch has come; until then it waits for it.
    first = pl.col("step") == windows["step"][0]
    begin = min(low, made.filter(first)["at"].min() or low)
    windows = windows.with_columns(
        pl.when(pl.col("start_ns") == low).then(begin).otherwise("start_ns").alias("start_ns")
    )
    made = made.filter(pl.col("at").is_between(low, high, closed="left") | (first & (pl.col("at") < low)))
    made = made.sort("at", "event")
    made = made.with_columns(waited=_waited(made, slices) | (made["end_ns"] <= low))
    ends = made.filter(pl.col("waited") & (pl.col("end_ns") < high))["end_ns"]
    cuts = pl.concat([windows["start_ns"], made["at"], ends]).unique().sort()
    work = _work(cuts, slices, windows, made)
    placed = _calls(made, cuts, windows, calls, rank)
    return Course(rank, work, placed, host, _did(did, windows), (high - low - unknown_ns) / len(windows))


def _with_arrivals(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with `at` and `end_ns`. One that begins as another of its stream ends was ready before, if `ready_ns` says so."""
    came = pl.col("start_ns") + pl.col("held_ns").fill_null(0)
    rows = calls.with_columns(at=came, end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    if "ready_ns" not in calls.columns:
        return rows
    stream = ("device", "stream", "on_host")
    before = {name: pl.col(name).shift(1).over(stream, order_by="start_ns") for name in ("at", "end_ns")}
    queued = pl.col("start_ns") - before["end_ns"] <= BETWEEN_CALLS_NS
    ready = pl.max_horizontal("ready_ns", before["at"])
    return rows.with_columns(at=pl.when(queued & (ready < came)).then(ready).otherwise("at"))


def _did(did: pl.DataFrame | None, windows: pl.DataFrame) -> pl.DataFrame:
    """What the host did in the steps, by whether it is input."""
    if did is None:
        return pl.DataFrame(schema=DID)
    rows = did.filter(pl.col("part").is_in(BUSY_HOST)).join(windows, on="step", how="semi")
    is_input = pl.col("part") == _INPUT
    sums = rows.group_by("step").agg(
        input_ns=pl.col("ns").filter(is_input).sum(), host_ns=pl.col("ns").filter(~is_input).sum()
    )
    return conform(sums.sort("step"), DID)


def _last_steps(windows: pl.DataFrame, calls: pl.DataFrame, world: int) -> pl.DataFrame:
    """As many as can be replayed: a typical step of a job with many calls shows as much as all of them."""
    per_step = max(1, len(calls) // max(1, len(windows)))
    return windows.tail(max(1, MOST_REPLAYED_CALLS // (per_step * world)))


def _waited(calls: pl.DataFrame, slices: pl.DataFrame) -> pl.Series:
    """Whether nothing but communication went on when the call ended; after a send, that work went on at once, too.

    A rank that waits for something else does not need what it sent in the meantime to have arrived.
    """
    exposed = slices.filter(_is_exposed()).sort("start_ns")
    if exposed.is_empty() or calls.is_empty():
        return pl.repeat(False, len(calls), dtype=pl.Boolean, eager=True)
    fresh = pl.col("start_ns") > pl.col("end_ns").shift(1) + SAME_END_NS
    exposed = exposed.with_columns(until=pl.col("end_ns").max().over(fresh.fill_null(False).cum_sum()))
    at = exposed["start_ns"].search_sorted(calls["end_ns"], side="left").cast(pl.Int64) - 1
    ended = take(exposed["end_ns"], at.clip(0)) >= calls["end_ns"] - SAME_END_NS
    went_on = take(exposed["until"], at.clip(0)) <= calls["end_ns"] + SAME_END_NS
    waited: pl.Series = (at >= 0) & ended & ((calls["name"] != "send") | went_on)
    return waited


def _is_exposed() -> pl.Expr:
    return pl.col("part").cast(pl.String).is_in(COLLECTIVE)


def _outside_calls(exposed: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Communication in which no call runs: a host that asks for one, or has not noticed its end."""
    if calls.is_empty():
        return exposed
    middle = exposed["start_ns"] + (exposed["end_ns"] - exposed["start_ns"]) // 2
    ordered = calls.sort("start_ns")
    at = ordered["start_ns"].search_sorted(middle, side="right").cast(pl.Int64) - 1
    return exposed.filter((at < 0) | (take(ordered["end_ns"].cum_max(), at.clip(0)) < middle))


def _work(cuts: pl.Series, slices: pl.DataFrame, windows: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The work between cuts, by what it is."""
    part = pl.col("part").cast(pl.String)
    alone = _outside_calls(slices.filter(_is_exposed()), calls)
    rows = pl.concat([slices.filter(~_is_exposed()), alone]).select(
        middle=(pl.col("start_ns") + pl.col("end_ns")) // 2,
        ns=pl.col("end_ns") - pl.col("start_ns"),
        kind=pl.when(part.is_in(_ON_DEVICE)).then(pl.lit("compute_ns")).when(part == _INPUT).then(pl.lit("input_ns")).otherwise(pl.lit("host_ns")),
    )  # fmt: skip
    node = cuts.search_sorted(rows["middle"], side="right").cast(pl.Int64) - 1
    sums = (
        rows.with_columns(node=node)
        .group_by("node")
        .agg(*(pl.col("ns").filter(pl.col("kind") == name).sum().alias(name) for name in TIMES))
    )
    steps = windows["start_ns"].search_sorted(cuts, side="right").cast(pl.Int64) - 1
    begun = calls["at"].search_sorted(cuts, side="right").cast(pl.Int64)
    frame = pl.DataFrame({"node": pl.int_range(len(cuts), eager=True), "begun": begun})
    frame = frame.with_columns(step=take(windows["step"], steps.clip(0)))
    frame = frame.with_columns(segment=pl.col("begun") - pl.col("begun").min().over("step"))
    joined = frame.join(sums, on="node", how="left", maintain_order="left")
    return conform(joined.with_columns(pl.col(*TIMES).fill_null(0)), WORK)


def _calls(
    made: pl.DataFrame, cuts: pl.Series, windows: pl.DataFrame, every: pl.DataFrame, rank: int
) -> pl.DataFrame:
    """The calls with their places in the work, and the keys of those that can be matched."""
    after = cuts.search_sorted(made["at"], side="left").cast(pl.Int64) - 1
    resumes = cuts.search_sorted(made["end_ns"], side="left").cast(pl.Int64)
    known = made["waited"] & (resumes < len(cuts))
    step = windows["start_ns"].search_sorted(made["at"], side="right").cast(pl.Int64) - 1
    keys = keyed(every, rank).select(*KEY, "stream").with_columns(event=keyed_events(every))
    rows = made.with_columns(
        pl.lit(rank, pl.Int32).alias("rank"),
        after=pl.Series(after.to_list(), dtype=pl.Int64).replace(-1, None),
        resumes=pl.select(pl.when(known).then(resumes)).to_series(),
        step=take(windows["step"], step.clip(0)),
        call=pl.int_range(pl.len()),
    )
    rows = rows.with_columns(behind=pl.col("call").shift(1).over("device", "stream", "on_host"))
    ended = rows.filter("waited").select(at="end_ns", follows="call").unique("at", keep="last")
    rows = rows.join(ended, on="at", how="left", maintain_order="left")
    rows = rows.drop("stream").join(keys, on="event", how="left", maintain_order="left")
    return conform(rows, CALLS)
