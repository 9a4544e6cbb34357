"""What one rank does between its communications: the part of a job's graph that only the rank itself knows.

The time of a rank on its critical device is cut wherever a call begins, and wherever the rank had waited for one that ends.
Between two cuts it works; time in which it only waits for communication does not count, and follows again when the job is replayed.
"""

from __future__ import annotations

from dataclasses import field

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.calls.matching import KEY, KEYED, keyed_with_events
from stepscope.ranks.stragglers.lateness import COLLECTIVE
from stepscope.registers.policy.job import BETWEEN_CALLS_NS, MOST_REPLAYED_CALLS, SAME_END_NS
from stepscope.trace.frames import conform, filled, kept, take, take_smallest

WORK = {
    "node": pl.Int64,
    "step": pl.Int32,
    "segment": pl.Int32,  # how many calls of the step have begun
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
    keys: pl.DataFrame | None = None,
) -> Course:
    """Of `collective_calls`, what the host `did` (see `pace`), and the account's slices and the windows of the rank's critical device.

    `keys` are those of `keyed`, where they are known already.
    """
    ordered = windows[["step", "start_ns", "end_ns"]].drop_nulls().sort("start_ns")
    windows = _last_steps(ordered, calls, world or 1)
    if windows.is_empty():
        return Course(rank, host=host)
    low, high = windows["start_ns"][0], windows["end_ns"][-1]
    slices = kept(slices, (slices["start_ns"] >= low) & (slices["end_ns"] <= high))
    # Before the first step the device does what was launched before the recording: nothing is known of that.
    part = slices["part"].cast(pl.String)
    is_unknown = part == _UNRECORDED
    unknown_ns = int((slices["end_ns"] - slices["start_ns"]).filter(is_unknown).sum())
    times = {name: slices[name] for name in ("start_ns", "end_ns")}
    slices = kept(pl.DataFrame({**times, "part": part}), ~is_unknown)
    made = _with_arrivals(calls)
    # A stage begins its first step when the first micro-batch has come; until then it waits for it.
    at, first = made["at"], filled(made["step"] == windows["step"][0])
    begin = min(low, take_smallest(at.filter(first), low))
    windows = windows.with_columns(start_ns=windows["start_ns"].set(windows["start_ns"] == low, begin))
    made = kept(made, ((at >= low) & (at < high)) | (first & (at < low))).sort("at", "event")
    made = made.hstack([(_waited(made, slices) | (made["end_ns"] <= low)).alias("waited")])
    ends = made["end_ns"].filter(made["waited"] & (made["end_ns"] < high))
    cuts = pl.concat([windows["start_ns"], made["at"], ends]).unique().sort()
    work = _work(cuts, slices, windows, made)
    placed = _calls(made, cuts, windows, keys_of(calls, rank) if keys is None else keys, rank)
    return Course(rank, work, placed, host, _did(did, windows), (high - low - unknown_ns) / len(windows))


def _with_arrivals(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with `at` and `end_ns`. One that begins as another of its stream ends was ready before, if `ready_ns` says so."""
    came = pl.col("start_ns") + pl.col("held_ns").fill_null(0)
    rows = calls.with_columns(at=came, end_ns=pl.col("start_ns") + pl.col("dur_ns"), launched_in="step")
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
    is_input, is_busy = pl.col("part") == _INPUT, pl.col("part").is_in(BUSY_HOST)
    wanted = is_busy & pl.col("step").is_in(windows["step"].to_list())
    sums = did.group_by("step").agg(
        pl.col("ns").filter(wanted & is_input).sum().alias("input_ns"),
        pl.col("ns").filter(wanted & ~is_input).sum().alias("host_ns"),
        known=wanted.any(),
    )
    return conform(kept(sums, sums["known"]).sort("step"), DID)


def _last_steps(windows: pl.DataFrame, calls: pl.DataFrame, world: int) -> pl.DataFrame:
    """As many as can be replayed: a typical step of a job with many calls shows as much as all of them."""
    per_step = max(1, len(calls) // max(1, len(windows)))
    return windows.tail(max(1, MOST_REPLAYED_CALLS // (per_step * world)))


def _waited(calls: pl.DataFrame, slices: pl.DataFrame) -> pl.Series:
    """Whether nothing but communication went on when the call ended; after a send, that work went on at once, too.

    A rank that waits for something else does not need what it sent in the meantime to have arrived.
    """
    exposed = kept(slices, _is_exposed(slices)).sort("start_ns")
    if exposed.is_empty() or calls.is_empty():
        return pl.repeat(False, len(calls), dtype=pl.Boolean, eager=True)
    fresh = pl.col("start_ns") > pl.col("end_ns").shift(1) + SAME_END_NS
    exposed = exposed.with_columns(until=pl.col("end_ns").max().over(fresh.fill_null(False).cum_sum()))
    at = exposed["start_ns"].search_sorted(calls["end_ns"], side="left").cast(pl.Int64) - 1
    # Before the first of them (-1) stands for the last one, and does not count.
    ended = take(exposed["end_ns"], at) >= calls["end_ns"] - SAME_END_NS
    went_on = take(exposed["until"], at) <= calls["end_ns"] + SAME_END_NS
    waited: pl.Series = (at >= 0) & ended & ((calls["name"] != "send") | went_on)
    return waited


def _is_exposed(slices: pl.DataFrame) -> pl.Series:
    found: pl.Series = (slices["part"] == COLLECTIVE[0]) | (slices["part"] == COLLECTIVE[1])
    return found


def _outside_calls(exposed: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Communication in which no call runs: a host that asks for one, or has not noticed its end."""
    if calls.is_empty():
        return exposed
    middle = exposed["start_ns"] + (exposed["end_ns"] - exposed["start_ns"]) // 2
    ordered = calls[["start_ns", "end_ns"]].sort("start_ns")
    at = ordered["start_ns"].search_sorted(middle, side="right").cast(pl.Int64) - 1
    return kept(exposed, (at < 0) | (take(ordered["end_ns"].cum_max(), at) < middle))


def _work(cuts: pl.Series, slices: pl.DataFrame, windows: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The work between cuts, by what it is."""
    is_exposed = _is_exposed(slices)
    alone = _outside_calls(kept(slices, is_exposed), calls)
    rows = pl.concat([kept(slices, ~is_exposed), alone])
    node = cuts.search_sorted((rows["start_ns"] + rows["end_ns"]) // 2, side="right").cast(pl.Int64) - 1
    part = pl.col("part")
    on_device, is_input = part.is_in(_ON_DEVICE), part == _INPUT
    kinds = dict(zip(TIMES, (on_device, is_input, ~on_device & ~is_input), strict=True))
    times = pl.DataFrame({"node": node, "ns": rows["end_ns"] - rows["start_ns"], "part": rows["part"]})
    sums = times.group_by("node").agg(
        *(pl.col("ns").filter(mask).sum().alias(name) for name, mask in kinds.items())
    )
    steps = windows["start_ns"].search_sorted(cuts, side="right").cast(pl.Int64) - 1
    begun = calls["at"].search_sorted(cuts, side="right").cast(pl.Int64)
    before = calls["at"].search_sorted(windows["start_ns"], side="left").cast(pl.Int64)
    frame = pl.DataFrame(
        {
            "node": pl.int_range(len(cuts), eager=True),
            "step": take(windows["step"], steps.set(steps < 0, 0)),
            "segment": begun - take(before, steps.set(steps < 0, 0)),
        }
    )
    joined = frame.join(sums, on="node", how="left", maintain_order="left")
    return conform(joined.with_columns(pl.col(*TIMES).fill_null(0)), WORK)


def keys_of(calls: pl.DataFrame, rank: int) -> pl.DataFrame:
    """KEY and stream of those of `collective_calls` that can be matched, and their events."""
    rows, events = keyed_with_events(calls, rank)
    return rows[[*KEY, "stream"]].hstack([events])


def _calls(
    made: pl.DataFrame, cuts: pl.Series, windows: pl.DataFrame, keys: pl.DataFrame, rank: int
) -> pl.DataFrame:
    """The calls with their places in the work, and the keys of those that can be matched."""
    after = cuts.search_sorted(made["at"], side="left").cast(pl.Int64) - 1
    resumes = cuts.search_sorted(made["end_ns"], side="left").cast(pl.Int64)
    known = made["waited"] & (resumes < len(cuts))
    step = windows["start_ns"].search_sorted(made["at"], side="right").cast(pl.Int64) - 1
    call = pl.int_range(len(made), eager=True).alias("call")
    rows = made.hstack([call]).with_columns(
        pl.lit(rank, pl.Int32).alias("rank"),
        behind=pl.col("call").shift(1).over("device", "stream", "on_host"),
        after=after.set(after < 0, None),
        resumes=resumes.set(~known, None),
        step=take(windows["step"], step.set(step < 0, 0)),
    )
    waited = made["waited"]
    ended = pl.DataFrame({"at": made["end_ns"].filter(waited), "follows": call.filter(waited)})
    rows = rows.join(ended.unique("at", keep="last"), on="at", how="left", maintain_order="left")
    rows = rows.drop("stream").join(keys, on="event", how="left", maintain_order="left")
    return conform(rows, CALLS)
