"""The steps of a recording: its sources in order, and one check for all of them.

In this order: markers of a capture or a framework; annotations of engines and trainers that are known, which may come once; a
user's annotation that repeats and fills the time; the programs that devices ran; what repeats on a thread; an annotation
that repeats and fills less. What none of them shows, or what `accept` refuses, is the whole recording as one window.
Where each step begins and ends on a device: see windows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import polars as pl

from stepscope.analysis.steps import annotated
from stepscope.analysis.steps.accept import Judge
from stepscope.analysis.steps.candidate import NO_STEPS, SPANS, Candidate
from stepscope.analysis.steps.infer import inferred
from stepscope.analysis.steps.profiler_calls import cut_off, profiler_calls
from stepscope.analysis.steps.programs import main_track_of, programs
from stepscope.analysis.steps.regions import choose_region, in_regions, region_times, region_windows
from stepscope.analysis.steps.windows import (
    WINDOWS,
    devices_with_work,
    partial_steps,
    plain_windows,
    step_windows,
    steps_of_events,
)
from stepscope.analysis.steps.work import DEVICE_WORK, place_in
from stepscope.lazy import dataclass
from stepscope.trace.frames import kept, take_largest, take_smallest
from stepscope.trace.snapshot import is_snapshot
from stepscope.trace.trace import Trace

__all__ = ["WHOLE", "Steps", "devices_with_work", "find_steps", "steps_of_events"]

WHOLE = 0  # the number of the window over the whole recording where there are no steps
_SOURCES: tuple[Callable[[Trace], Iterator[Candidate]], ...] = (
    annotated.marked,
    annotated.known,
    annotated.repeated,
    programs,
    inferred,
    annotated.loosely_repeated,
    annotated.warming_up,
)


@dataclass(frozen=True)
class Steps:
    """`host`: step, track, start_ns, end_ns in time order. `windows`: device, step, start_ns, end_ns, partial.

    `source`: marker, annotation, program, inferred, whole (no steps, but one window over the recording) or none.
    `confidence`: high, medium or low. `pieces`: steps at the recording's ends that were recorded in part and left out.
    `warm_up`: the name of the annotation whose passes were left out, and `warm_ups` how many.
    `region`: the region whose passes these are, of all `regions` of the recording; their windows do not touch.
    """

    source: str
    name: str | None
    host: pl.DataFrame
    windows: pl.DataFrame
    confidence: str | None = None
    pieces: int = 0
    warm_up: str | None = None
    warm_ups: int = 0
    region: str | None = None
    regions: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether there are no steps."""
        return self.source in ("whole", "none")

    def as_run(self) -> Steps:
        """With the host's windows in place of the spans that it marked, where programs run behind it."""
        times = self.windows.select("step", "start_ns", "end_ns")
        return replace(
            self, host=self.host.select("step", "track").join(times, on="step").select(list(SPANS))
        )


def find_steps(
    trace: Trace, step_name: str | None = None, whole: bool = False, agreed: str | None = None
) -> Steps:
    """The steps as the host marked or showed them, and each device's own windows of time for them.

    `agreed` is the region that the ranks agreed on.
    """
    if is_snapshot(trace):  # a memory snapshot has no work that takes time
        return Steps("none", None, NO_STEPS, pl.DataFrame(schema=WINDOWS))
    region = None if whole else _region_steps(trace, step_name, agreed)
    if region is not None:
        return region
    judge = Judge(trace)
    calls = profiler_calls(trace)
    for candidate in _candidates(trace, step_name, whole):
        found = _judged(judge, calls, candidate)
        if found is None:
            continue
        if candidate.may_hold_loop:
            return _loop_inside(judge, calls) or found
        if candidate.source == "program":
            return _loop_of_programs(judge, calls, found) or found
        return found
    return _whole(trace, judge, calls, "high" if whole else "low")


def times_in_regions(trace: Trace) -> dict[str, int]:
    """Each region of the recording and the time in it, the longest first; none where regions were off."""
    return region_times(_passes(trace))


def _passes(trace: Trace) -> pl.DataFrame:
    """step, track, start_ns, end_ns, region of the passes through all regions."""
    noted = trace.info.capture.get("regions") is not None
    marked = next(annotated.marked(trace), None) if noted else None
    return in_regions(pl.DataFrame(schema=SPANS) if marked is None else marked.spans, trace)


def _region_steps(trace: Trace, step_name: str | None, agreed: str | None) -> Steps | None:
    """The passes through one region. Windows are made of all passes: those of another region may reach into this one's."""
    passes = _passes(trace)
    regions = list(region_times(passes))
    region = choose_region(regions, step_name, agreed)
    if region is None:
        return None
    host = passes.filter(pl.col("region") == region).drop("region")
    mine = pl.col("step").is_in(host["step"].implode())
    windows = region_windows(trace, passes).filter(mine)
    return Steps("marker", region, host, windows, "high", region=region, regions=tuple(regions))


def _loop_inside(judge: Judge, calls: pl.DataFrame) -> Steps | None:
    """The steps of a training loop that has an annotation such as `train` around it."""
    loops = (loop for loop in inferred(judge.trace) if loop.trained)
    found = (_judged(judge, calls, loop) for loop in loops)
    return next((steps for steps in found if steps is not None and len(steps.host) > 1), None)


def _loop_of_programs(judge: Judge, calls: pl.DataFrame, programs: Steps) -> Steps | None:
    """The steps of the host's loop, if each runs equally many programs: it also shows what comes before a program."""
    if judge.work["launch"].null_count():
        return None
    found = (_judged(judge, calls, loop) for loop in inferred(judge.trace))
    loop = next((steps for steps in found if steps is not None), None)
    if loop is None or len(loop.host) < 2 or len(programs.host) % len(loop.host):
        return None
    return replace(loop, confidence="medium")


def _candidates(trace: Trace, step_name: str | None, whole: bool) -> Iterator[Candidate]:
    if whole:
        return
    if step_name is not None:
        yield annotated.by_hand(trace, step_name)
        return
    for source in _SOURCES:
        yield from source(trace)


def _judged(judge: Judge, calls: pl.DataFrame, candidate: Candidate) -> Steps | None:
    """The steps of a candidate without what is no step: the profiler's own calls, warm-up, pieces at the ends."""
    trace = judge.trace
    trimmed = _cut(candidate, calls, judge)
    every, left_out = _without_warm_up(trace, trimmed.spans)
    # Programs have no events of a thread to count, and are recorded as a whole.
    is_piece = partial_steps(trace, every) & (candidate.windows is None)
    pieces, whole = kept(every, is_piece), kept(every, ~is_piece)
    spans = kept(whole, whole["start_ns"] < whole["end_ns"])
    final = replace(trimmed, spans=spans)
    if not judge.accepts(final, pl.concat([left_out[list(SPANS)], pieces])):
        return None
    host = trimmed.steps.filter(pl.col("step").is_in(spans["step"].implode()))
    windows = _windows(trace, final, host, calls, left_out)
    if windows.is_empty():
        return None
    host = host.filter(pl.col("step").is_in(windows["step"].implode()))
    return Steps(
        candidate.source, candidate.name, host, windows, candidate.confidence, len(pieces),
        str(left_out["name"][0]) if len(left_out) else None, len(left_out),
    )  # fmt: skip


def _cut(candidate: Candidate, calls: pl.DataFrame, judge: Judge) -> Candidate:
    """The candidate without the profiler's start and stop."""
    if candidate.on_device or calls.is_empty():
        return candidate
    host = None if candidate.host is None else cut_off(candidate.host, calls, judge.work)
    return replace(candidate, spans=cut_off(candidate.spans, calls, judge.work), host=host)


def _without_warm_up(trace: Trace, spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The spans outside warm-up annotations, and those inside with its name; all of them if there are no others."""
    warm = annotated.warm_ups(trace)
    nothing = spans.clear().hstack([pl.Series("name", [], dtype=pl.String)])
    if warm.is_empty() or spans.is_empty():
        return spans, nothing
    warm = warm.sort("start_ns")
    reached = warm.with_columns(end_ns=pl.col("end_ns").cum_max())
    place = place_in((spans["start_ns"] + spans["end_ns"]) // 2, reached)
    if not place.null_count():
        return spans, nothing
    inside = spans.with_columns(name=warm["name"].gather(place))
    return spans.filter(place.is_null()), inside.filter(place.is_not_null())


def _windows(
    trace: Trace, candidate: Candidate, host: pl.DataFrame, calls: pl.DataFrame, left_out: pl.DataFrame
) -> pl.DataFrame:
    if candidate.windows is not None:
        return candidate.windows.filter(pl.col("step").is_in(host["step"].implode()))
    begins = host["start_ns"] if candidate.closed else _begins(host, calls, left_out)
    found = step_windows(trace, host, begins)
    # If earlier work fills every step, the devices show nothing of them, and the host's own times are all there is.
    return found if len(found) else plain_windows(trace, host)


def _begins(host: pl.DataFrame, calls: pl.DataFrame, left_out: pl.DataFrame) -> pl.Series:
    """Time between two steps leads up to the second, unless the profiler started or something was left out in it."""
    between = pl.DataFrame({"start_ns": host["end_ns"].shift(1), "end_ns": host["start_ns"]})
    apart = pl.repeat(False, len(host), dtype=pl.Boolean, eager=True)
    for spans in (each for each in (calls, left_out) if len(each)):
        starts = spans["start_ns"].sort()
        after = starts.search_sorted(between["end_ns"], side="left").cast(pl.Int64)
        before = starts.search_sorted(between["start_ns"].fill_null(0), side="left").cast(pl.Int64)
        apart = apart | (after > before)
    own = apart | between["start_ns"].is_null()
    return pl.select(
        pl.when(own)
        .then(host["start_ns"])
        .otherwise(pl.min_horizontal(host["start_ns"], between["start_ns"]))
    ).to_series()


def _whole(trace: Trace, judge: Judge, calls: pl.DataFrame, confidence: str) -> Steps:
    """The whole recording as one window, without the profiler's own calls at its ends."""
    events = trace.events
    low = take_smallest(events["start_ns"])
    high = take_largest(events["start_ns"] + events["dur_ns"])
    spans = pl.DataFrame(
        {"step": [WHOLE], "track": [main_track_of(trace)], "start_ns": [low], "end_ns": [high]}, schema=SPANS
    )
    host = cut_off(spans, calls, judge.work).filter(pl.col("start_ns") < pl.col("end_ns"))
    if host.is_empty():
        return Steps("none", None, NO_STEPS, pl.DataFrame(schema=WINDOWS))
    return Steps("whole", None, host, _whole_windows(trace, host), confidence)


def _whole_windows(trace: Trace, host: pl.DataFrame) -> pl.DataFrame:
    """The window on each device, with all of its work: that may begin before the host's calls and end after them."""
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    work = trace.events.filter(pl.col("kind").is_in(DEVICE_WORK)).join(
        tracks.select("device", track="id"), on="track"
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    extents = work.group_by("device").agg(first=pl.col("start_ns").min(), last=end.max()).sort("device")
    if extents.is_empty():
        extents = pl.DataFrame({"device": [None], "first": [None], "last": [None]}, schema=extents.schema)
    return host.join(extents, how="cross").select(
        "device",
        "step",
        pl.min_horizontal("start_ns", "first").alias("start_ns"),
        pl.max_horizontal("end_ns", "last").alias("end_ns"),
        pl.lit(False).alias("partial"),
    )
