"""The steps of a trace without markers, from what repeats on the main thread.

The thread's calls are the outermost events that do not span the whole recording (a loop's own frame does). Their
names form a sequence; `repetition` finds its period. A recording that holds whole periods begins with a step. Else
a step begins where the next batch is asked for, or after the optimizer. Between two steps lies the moment when
the next batch is asked for, or else the end of the last call of the step: what comes before the first call of
the next one, and was not recorded, is most often the making of its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.causes import host_codes
from stepscope.analysis.host_names import INPUT_THREAD
from stepscope.analysis.repetition import Repetition, repetition
from stepscope.native import lineage as names
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_MAIN_THREAD = r"(?i)^(python|main\b|pt_main)"
_COUNTER = r"[#\s_:/-]*\d+$"
_CALLS = ("op", "python", "annotation", "runtime", "span")
_SPANS_ALL = 0.5
_LEVELS = 4
_NEARLY_WHOLE = 0.1  # of a period may be missing or left over, where a recording holds whole periods


@dataclass(frozen=True)
class Calls:
    """The calls of one thread in time order: token, start_ns, end_ns, code, role; and the thread."""

    rows: pl.DataFrame
    track: int


def infer_steps(trace: Trace) -> pl.DataFrame | None:
    """step, track, start_ns, end_ns of the repetitions that the trace shows, or None."""
    for calls in _sources(trace):
        rows = _between_strays(calls.rows)
        found = _repetition(rows)
        if found is not None:
            return _as_steps(calls, rows, _beginnings(rows, found))
    return None


def _sources(trace: Trace) -> list[Calls]:
    """The threads worth asking, and the busiest stream of a recording that has no host."""
    code = host_codes(trace)
    events = trace.events.with_columns(code=code).filter(
        pl.col("kind").is_in(_CALLS), pl.col("dur_ns") > 0, pl.col("role").ne_missing("step")
    )
    threads = _threads(trace, events)
    found = [_calls_of(trace, events.filter(pl.col("track") == track), track) for track in threads]
    return [*found, *_stream(trace)]


def _threads(trace: Trace, events: pl.DataFrame) -> list[int]:
    """Host threads, the likeliest main thread first: the process's first, one with Python or an optimizer, the busiest."""
    thread = pl.col("thread").fill_null("")
    host = trace.tracks.filter((pl.col("what") == "host") & ~thread.str.contains(INPUT_THREAD)).select(
        track="id",
        first=(pl.col("pid") == pl.col("tid")).fill_null(False) | thread.str.contains(_MAIN_THREAD),
    )
    telling = (pl.col("role") == "optimizer").fill_null(False) | (pl.col("kind") == "python")
    counted = events.group_by("track").agg(pl.len(), telling=telling.any()).join(host, on="track")
    enough = counted.filter(pl.col("first") | (pl.col("len") * 20 >= pl.col("len").sum()))
    ranked = enough.sort("first", "telling", "len", "track", descending=[True, True, True, False])
    return ranked["track"].to_list()


def _calls_of(trace: Trace, events: pl.DataFrame, track: int) -> Calls:
    """The outermost events of the thread, after those that span (nearly) all of it and come once."""
    end = events.select((pl.col("start_ns") + pl.col("dur_ns")).max()).item()
    extent = end - events["start_ns"][0]
    once = pl.len().over("name") == 1
    spine = events.filter(once & (pl.col("dur_ns") >= _SPANS_ALL * extent))["id"]
    kept = events.filter(~pl.col("id").is_in(spine.implode()))
    is_kept = trace.events["id"].is_in(kept["id"].implode())
    inner = ancestors(trace.events, is_kept).is_not_null()
    rows = kept.filter(~inner.gather(kept["id"]))
    return Calls(_tokens(rows, _signatures(trace.events, rows["id"])), track)


def _signatures(events: pl.DataFrame, calls: pl.Series) -> pl.Series:
    """What tells a call from others: its name and those of its first child, grandchild, …: wrappers all have one name."""
    first_child = events.filter(pl.col("parent").is_not_null()).group_by("parent").agg(pl.col("id").min())
    children = pl.repeat(None, len(events), dtype=pl.UInt32, eager=True).scatter(
        first_child["parent"], first_child["id"]
    )
    names_of = events["name"].cast(pl.String).str.replace(_COUNTER, "")
    level, parts = calls, []
    for _ in range(_LEVELS):
        parts.append(names_of.gather(level))
        level = children.gather(level)
    return pl.select(pl.concat_str(*parts, separator="/", ignore_nulls=True)).to_series()


def _tokens(rows: pl.DataFrame, token: pl.Series) -> pl.DataFrame:
    return rows.select(
        "start_ns", "code", "role", end_ns=pl.col("start_ns") + pl.col("dur_ns"), token=token
    ).sort("start_ns", maintain_order=True)


def _stream(trace: Trace) -> list[Calls]:
    """The kernels of the busiest stream."""
    streams = trace.tracks.filter(pl.col("what") == "device")["id"]
    kernels = trace.events.filter(pl.col("kind") == "kernel", pl.col("track").is_in(streams.implode()))
    if kernels.is_empty():
        return []
    busiest = kernels.group_by("track").agg(pl.col("dur_ns").sum()).sort("dur_ns", "track")["track"][-1]
    rows = kernels.filter(pl.col("track") == busiest).with_columns(code=pl.lit(names.OP, dtype=pl.UInt8))
    return [Calls(_tokens(rows, rows["name"].cast(pl.String)), int(busiest))]


def _between_strays(rows: pl.DataFrame) -> pl.DataFrame:
    """The calls without those at either end that come only once: the profiler's start and stop."""
    repeated = rows.select((pl.len().over("token") > 1).alias("repeated"))["repeated"]
    places = repeated.arg_true()
    return rows[int(places[0]) : int(places[-1]) + 1] if len(places) else rows.clear()


def _repetition(rows: pl.DataFrame) -> Repetition | None:
    """A step has one or a few updates of the weights, requests for a batch, and perhaps waits for the device."""
    if len(rows) < 2:
        return None
    updates = rows["token"].str.starts_with("Optimizer.step")
    waits = rows["code"] == names.WAIT_DEVICE
    return repetition(rows["token"], [updates, rows["code"] == names.INPUT], [waits])


def _beginnings(rows: pl.DataFrame, found: Repetition) -> pl.Series:
    """The place of the first call of each step."""
    anchors = found.anchors.cast(pl.Int64)
    over = abs(len(rows) - found.count * found.period)
    if over <= max(1.0, _NEARLY_WHOLE * found.period):
        return _aligned(rows["token"], anchors)
    asked = _one_each((rows["code"] == names.INPUT).arg_true().cast(pl.Int64), anchors)
    if asked is not None:
        return asked
    if rows["token"].str.starts_with("Optimizer.").gather(anchors).all():
        return _after_optimizer(rows, anchors)
    return _aligned(rows["token"], anchors)


def _aligned(tokens: pl.Series, anchors: pl.Series) -> pl.Series:
    """Steps begin as the recording does: as far before each anchor as the recording's first call before the first."""
    ahead = int(anchors[0])
    alike = (tokens == tokens[0]).arg_true().cast(pl.Int64)
    later = pl.DataFrame({"anchor": anchors[1:], "before": anchors[:-1]}).with_columns(
        wanted=pl.col("anchor") - ahead
    )
    place = alike.search_sorted(later["wanted"], side="left").cast(pl.Int64)
    below = alike.gather((place - 1).clip(lower_bound=0))
    above = alike.gather(place.clip(upper_bound=len(alike) - 1))
    near = pl.when(above - pl.col("wanted") <= pl.col("wanted") - below).then(above).otherwise(below)
    found = later.with_columns(near=near).select(
        pl.when((pl.col("near") > pl.col("before")) & (pl.col("near") <= pl.col("anchor")))
        .then("near")
        .otherwise(pl.max_horizontal("wanted", pl.col("before") + 1))
    )
    return pl.concat([pl.Series([0], dtype=pl.Int64), found.to_series()])


def _one_each(places: pl.Series, anchors: pl.Series) -> pl.Series | None:
    """The first of the places after each anchor, where nearly every period has one."""
    if places.is_empty():
        return None
    edges = pl.concat([pl.Series([-1], dtype=pl.Int64), anchors])
    index = places.search_sorted(edges, side="left")
    chosen = places.gather(index.filter(index < len(places))).unique(maintain_order=True)
    return chosen if len(chosen) >= len(anchors) - 1 else None


def _after_optimizer(rows: pl.DataFrame, anchors: pl.Series) -> pl.Series:
    """Behind the optimizer's step, and behind the clearing of gradients if that follows at once."""
    clears = rows["token"].str.starts_with("Optimizer.zero_grad")
    after = (anchors + 1).filter(anchors + 1 < len(rows))
    cleared = clears.gather(after)
    places = pl.concat([pl.Series([0], dtype=pl.Int64), after + cleared.cast(pl.Int64)])
    inside: pl.Series = places.filter(places < len(rows))
    return inside.unique(maintain_order=True)


def _as_steps(calls: Calls, rows: pl.DataFrame, beginnings: pl.Series) -> pl.DataFrame:
    """Steps that touch: from the call each begins with to the end of the last call before the next."""
    last = pl.concat(
        [beginnings[1:] - 1, pl.Series([_last_place(rows["token"], beginnings)], dtype=pl.Int64)]
    )
    first_call, last_end = rows["start_ns"].gather(beginnings), rows["end_ns"].cum_max().gather(last)
    asks = rows["code"].is_in([names.INPUT, names.PROFILER]).gather(beginnings)
    edges = pl.DataFrame({"next_call": first_call[1:], "last_end": last_end[:-1], "asks": asks[1:]}).select(
        pl.when("asks").then("next_call").otherwise(pl.min_horizontal("next_call", "last_end"))
    ).to_series()  # fmt: skip
    lead, tail = _median(first_call[1:] - edges), _median(edges - last_end[:-1])
    begin = _profiler_edge(calls, int(first_call[0]) - lead, int(first_call[0]), "end_ns")
    end = _profiler_edge(calls, int(last_end[-1]) + tail, int(last_end[-1]), "start_ns")
    return pl.DataFrame(
        {"start_ns": [begin, *edges], "end_ns": [*edges, end]}, schema_overrides={"start_ns": pl.Int64, "end_ns": pl.Int64}
    ).select(
        step=pl.int_range(pl.len(), dtype=pl.Int32),
        track=pl.lit(calls.track, dtype=pl.UInt32),
        start_ns="start_ns",
        end_ns="end_ns",
    )  # fmt: skip


def _last_place(tokens: pl.Series, beginnings: pl.Series) -> int:
    """The last step ends with the same call as the others: the profiler's own wait at its end does not belong to it."""
    end = len(tokens) - 1
    if len(beginnings) < 2:
        return end
    expected = int(beginnings[-1] + beginnings.diff().median()) - 1
    usual = tokens[int(beginnings[-1]) - 1]
    return expected if expected < end and tokens[expected] == usual else end


def _profiler_edge(calls: Calls, expected: int, call: int, side: str) -> int:
    """Where the first step begins (the last one ends): as far from its call as in other steps; at the profiler's
    own start (stop) if that lies nearer to it than the call."""
    edges = calls.rows.filter(pl.col("code") == names.PROFILER)[side]
    outside = edges.filter(edges <= call if side == "end_ns" else edges >= call)
    if outside.is_empty():
        return expected
    edge = int(outside[-1] if side == "end_ns" else outside[0])
    return edge if abs(edge - expected) <= abs(call - expected) else expected


def _median(lengths: pl.Series) -> int:
    return int(lengths.cast(pl.Float64).quantile(0.5, "midpoint") or 0)
