"""The steps of a trace without markers, from what repeats on the main thread.

The thread's calls are the outermost events that do not span the whole recording (a loop's own frame does). Their
names form a sequence; `repetition` finds its period. A recording that holds whole periods begins with a step. Else
a step begins where the next batch is asked for, or after the optimizer. For the moment between two steps see
boundaries.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.names import INPUT_THREAD
from stepscope.analysis.steps.boundaries import median, recording, step_spans
from stepscope.analysis.steps.calls import Calls, device_calls, tokens_of
from stepscope.analysis.steps.candidate import Candidate
from stepscope.analysis.steps.repetition import Repetition, repetition
from stepscope.native.host import lineage as names
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import (
    CALLS_AFTER_UPDATE,
    SLIVER_OF_STEP,
    SPINE_LEVELS,
    SPINE_SHARE,
    STEP_THREADS,
    THREAD_CALLS,
    WHOLE_PERIOD_MOST,
)
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_MAIN_THREAD = r"(?i)^(python|main\b|pt_main)"
_COUNTER = r"[#\s_:/-]*\d+$"
_CALLS = ("op", "python", "annotation", "runtime", "span")


def inferred(trace: Trace) -> Iterator[Candidate]:
    """The repetitions that the trace shows, on the likeliest thread first."""
    if trace.info.capture.get("backend") == "host":  # sampled stacks: what repeats there is the sampling
        return
    for calls in _sources(trace):
        rows = _between_strays(calls.rows)
        found = _repetition(rows)
        if found is not None:
            yield _candidate(trace, calls, rows, found)


def _candidate(trace: Trace, calls: Calls, rows: pl.DataFrame, found: Repetition) -> Candidate:
    beginnings = _beginnings(rows, found, calls.on_device)
    spans = step_spans(rows, beginnings, recording(trace, calls.rows, rows)).select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("step"),
        pl.lit(calls.track, dtype=pl.UInt32).alias("track"),
        "start_ns",
        "end_ns",
    )
    # A loop that updates weights or asks for batches is hardly a layer.
    telling = rows["updates"] | (rows["code"] == names.INPUT)
    trained = bool(telling.gather(found.anchors).all())
    return Candidate(
        "inferred", None, "medium" if trained else "low", spans,
        guessed=True, on_device=calls.on_device, trained=trained, least_fill=MAJORITY,
    )  # fmt: skip


def _sources(trace: Trace) -> Iterator[Calls]:
    """The threads worth asking, and the kernels of a recording that has no host; made as they are asked for."""
    code = host_codes(trace)
    events = trace.events.with_columns(code=code).filter(
        pl.col("kind").is_in(_CALLS), pl.col("dur_ns") > 0, pl.col("role").ne_missing("step")
    )
    for track in _threads(trace, events):
        yield _calls_of(trace, events.filter(pl.col("track") == track), track)
    yield from device_calls(trace)


def _threads(trace: Trace, events: pl.DataFrame) -> list[int]:
    """Host threads, the likeliest main thread first: the process's first, one with Python or an optimizer, the busiest.

    Not all of them: each costs a look at all events, and a file may have as many processes as events.
    """
    thread = pl.col("thread").fill_null("")
    host = trace.tracks.filter((pl.col("what") == "host") & ~thread.str.contains(INPUT_THREAD)).select(
        track="id",
        first=(pl.col("pid") == pl.col("tid")).fill_null(False) | thread.str.contains(_MAIN_THREAD),
    )
    telling = (pl.col("role") == "optimizer").fill_null(False) | (pl.col("kind") == "python")
    counted = events.group_by("track").agg(pl.len(), telling=telling.any()).join(host, on="track")
    enough = counted.filter(pl.col("first") | (pl.col("len") >= THREAD_CALLS * pl.col("len").sum()))
    ranked = enough.sort("first", "telling", "len", "track", descending=[True, True, True, False])
    return ranked["track"].head(STEP_THREADS).to_list()


def _calls_of(trace: Trace, events: pl.DataFrame, track: int) -> Calls:
    """The outermost events of the thread, after those that span (nearly) all of it and come once."""
    end = events.select((pl.col("start_ns") + pl.col("dur_ns")).max()).item()
    extent = end - events["start_ns"][0]
    once = pl.len().over("name") == 1
    spine = events.filter(once & (pl.col("dur_ns") >= SPINE_SHARE * extent))["id"]
    kept = events.filter(~pl.col("id").is_in(spine.implode()))
    is_kept = trace.events["id"].is_in(kept["id"].implode())
    inner = ancestors(trace.events, is_kept).is_not_null()
    rows = kept.filter(~inner.gather(kept["id"])).sort("start_ns", maintain_order=True)
    rows = tokens_of(rows, _signatures(trace.events, rows["id"]))
    if rows.is_empty():  # every call is part of the spine
        return Calls(rows.with_columns(updates=pl.lit(False)), track)
    updates = events.filter(pl.col("name").cast(pl.String).str.starts_with("Optimizer.step"))["start_ns"]
    place = rows["start_ns"].search_sorted(updates, side="right").cast(pl.Int64) - 1
    inside = updates < rows["end_ns"].gather(place.clip(lower_bound=0))
    found = place.filter(inside & (place >= 0)).unique()
    return Calls(rows.with_columns(updates=pl.int_range(pl.len()).is_in(found.implode())), track)


def _signatures(events: pl.DataFrame, calls: pl.Series) -> pl.Series:
    """What tells a call from others: its name and those of its first child, grandchild, …: wrappers all have one name."""
    first_child = events.filter(pl.col("parent").is_not_null()).group_by("parent").agg(pl.col("id").min())
    children = pl.repeat(None, len(events), dtype=pl.UInt32, eager=True).scatter(
        first_child["parent"], first_child["id"]
    )
    names_of = events["name"].cast(pl.String).str.replace(_COUNTER, "")
    level, parts = calls, []
    for _ in range(SPINE_LEVELS):
        parts.append(names_of.gather(level))
        level = children.gather(level)
        # An annotation says enough by its name; what is in it may change from step to step.
        level = pl.select(pl.when(events["kind"].gather(calls) != "annotation").then(level)).to_series()
    return pl.select(pl.concat_str(*parts, separator="/", ignore_nulls=True)).to_series()


def _between_strays(rows: pl.DataFrame) -> pl.DataFrame:
    """The calls without those at either end that come only once: the profiler's start and stop."""
    repeated = rows.select((pl.len().over("token") > 1).alias("repeated"))["repeated"]
    places = repeated.arg_true()
    return rows[int(places[0]) : int(places[-1]) + 1] if len(places) else rows.clear()


def _repetition(rows: pl.DataFrame) -> Repetition | None:
    """A step has one or a few updates of the weights, requests for a batch, and perhaps waits for the device."""
    if len(rows) < 2:
        return None
    waits = rows["code"] == names.WAIT_DEVICE
    return repetition(rows["token"], [rows["updates"], rows["code"] == names.INPUT], [waits])


def _beginnings(rows: pl.DataFrame, found: Repetition, on_device: bool) -> pl.Series:
    """The place of the first call of each step."""
    anchors = found.anchors.cast(pl.Int64)
    asked = _one_each((rows["code"] == names.INPUT).arg_true().cast(pl.Int64), anchors)
    if asked is not None:
        places = _with_fragment(rows, asked)
    elif rows["updates"].gather(anchors).all() and on_device and _follows_other_work(anchors):
        places = _behind_updates(rows, anchors)  # the first step is somewhere at the end of the start-up
    elif rows["updates"].gather(anchors).all() and not _ends_with_update(rows, found):
        after = _behind_updates(rows, anchors) if on_device else _after_update(rows, anchors)
        places = _with_fragment(rows, after)
    else:
        places = _aligned(rows["token"], anchors)
    return _before_profiler(rows["code"], places)


def _behind_updates(rows: pl.DataFrame, anchors: pl.Series) -> pl.Series:
    """Behind the last kernel of each update, of which there are many: the last one in the first half of what follows an anchor."""
    updates = rows["updates"].arg_true().cast(pl.Int64)
    half = median(anchors.diff().drop_nulls()) // 2
    last = updates.gather(updates.search_sorted(anchors + half, side="left").cast(pl.Int64) - 1)
    after = last + 1
    inside: pl.Series = after.filter(after < len(rows))
    return inside


def _follows_other_work(anchors: pl.Series) -> bool:
    """Whether more comes before the first anchor than a step: the start-up of the job."""
    return int(anchors[0]) > WHOLE_PERIOD_MOST * median(anchors.diff().drop_nulls())


def _ends_with_update(rows: pl.DataFrame, found: Repetition) -> bool:
    """Whether the recording holds whole steps, as far as one can see: then little comes after the last update."""
    after = len(rows) - 1 - int(rows["updates"].arg_true()[-1])
    return found.whole and after <= CALLS_AFTER_UPDATE * median(
        found.anchors.cast(pl.Int64).diff().drop_nulls()
    )


def _with_fragment(rows: pl.DataFrame, places: pl.Series) -> pl.Series:
    """What comes before the first beginning, and after the last, is a step or part of one, unless it is next to nothing."""
    start, end = rows["start_ns"], int(rows["end_ns"].sort()[-1])
    little = SLIVER_OF_STEP * median(start.gather(places).diff().drop_nulls())
    if len(places) > 1 and end - int(start[int(places[-1])]) <= little:
        places = places[:-1]
    if int(start[int(places[0])]) - int(start[0]) <= little:
        return places
    return pl.concat([pl.Series([0], dtype=pl.Int64), places])


def _before_profiler(code: pl.Series, places: pl.Series) -> pl.Series:
    """The profiler's own calls between two steps come after the boundary."""
    is_profiler = (code == names.PROFILER).cast(pl.Int64)
    for _ in range(SPINE_LEVELS):
        earlier = (places - 1).clip(lower_bound=0)
        places = places - is_profiler.gather(earlier) * (places > 0).cast(pl.Int64)
    return places.unique(maintain_order=True)


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


def _after_update(rows: pl.DataFrame, anchors: pl.Series) -> pl.Series:
    """Behind the update of the weights, and behind the clearing of gradients if that follows at once."""
    clears = rows["token"].str.starts_with("Optimizer.zero_grad")
    after = (anchors + 1).filter(anchors + 1 < len(rows))
    places = after + clears.gather(after).cast(pl.Int64)
    inside: pl.Series = places.filter(places < len(rows))
    return inside
