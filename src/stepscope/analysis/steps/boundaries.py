"""The moment between two steps that were inferred from their calls.

If the next step asks for a batch first, or the profiler was told of the step, the boundary is there. Else it lies
somewhere in the silence between the last call of one step and the first call of the next. How the recording begins
and ends tells where: silence before its first call is made by the beginning of a step, silence after its last
call by the end of one. Where that is not known, the silence belongs to the next step: most often its batch
is made then.
"""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.native.host import lineage as codes
from stepscope.registers.calibration.profiler import PROFILER_START_NS
from stepscope.trace.trace import Trace

_PROFILE = r"^PyTorch Profiler \("


@dataclass(frozen=True)
class Recording:
    """When the recording began and ended, where that is known."""

    begin_ns: int | None
    end_ns: int | None


def recording(trace: Trace, calls: pl.DataFrame, steps: pl.DataFrame) -> Recording:
    """By the profiler's own calls around those of the steps, or by the span in which it says it recorded."""
    first, last = int(steps["start_ns"][0]), int(steps["end_ns"].sort()[-1])
    own = calls.filter(pl.col("code") == codes.PROFILER)
    before = own.filter(pl.col("end_ns") <= first)["end_ns"]
    after = own.filter(pl.col("start_ns") >= last)["start_ns"]
    said = trace.events.filter(
        pl.col("kind") == "span", pl.col("name").cast(pl.String).str.contains(_PROFILE)
    ).select(begin=pl.col("start_ns") + PROFILER_START_NS, end=pl.col("start_ns") + pl.col("dur_ns"))
    begins = before if len(before) else said.filter(pl.col("begin") - PROFILER_START_NS <= first)["begin"]
    ends = after if len(after) else said.filter(pl.col("end") >= last)["end"]
    return Recording(
        min(first, int(begins.sort()[-1])) if len(begins) else None,
        int(ends.sort()[0]) if len(ends) else None,
    )


def step_spans(rows: pl.DataFrame, beginnings: pl.Series, recorded: Recording) -> pl.DataFrame:
    """start_ns and end_ns of steps that touch. `rows` are calls (token, start_ns, end_ns, code), `beginnings` places."""
    last = pl.concat(
        [beginnings[1:] - 1, pl.Series([_last_place(rows["token"], beginnings)], dtype=pl.Int64)]
    )
    first_call, last_end = rows["start_ns"].gather(beginnings), rows["end_ns"].cum_max().gather(last)
    begin, end = int(first_call[0]), int(last_end[-1])
    silence = (first_call[1:] - last_end[:-1]).clip(lower_bound=0)
    share = _share_of_the_end(begin, end, median(silence), recorded)
    told = rows["code"].is_in([codes.INPUT, codes.PROFILER]).gather(beginnings)[1:]
    later = last_end[:-1] + (silence * share).cast(pl.Int64)
    edges = pl.select(
        pl.when(told).then(first_call[1:]).otherwise(pl.min_horizontal(first_call[1:], later))
    ).to_series()
    lead, tail = median(first_call[1:] - edges), median(edges - last_end[:-1])
    starts = [_plausible(begin - lead, recorded.begin_ns, begin), *edges]
    ends = [*edges, _plausible(end + tail, recorded.end_ns, end)]
    return pl.DataFrame(
        {"start_ns": starts, "end_ns": ends}, schema={"start_ns": pl.Int64, "end_ns": pl.Int64}
    )


def _share_of_the_end(begin: int, end: int, silence: int, recorded: Recording) -> float:
    """Of the silence between two steps, how much belongs to the one that ends."""
    if recorded.begin_ns is None or recorded.end_ns is None:
        return 0.0
    before, after = min(begin - recorded.begin_ns, silence), min(recorded.end_ns - end, silence)
    return after / (before + after) if 0 < silence / 2 <= before + after else 0.0


def _plausible(expected: int, recorded: int | None, call: int) -> int:
    """The edge of the recording, if it is nearer to the expected edge than the call is; else the expected one."""
    if recorded is not None and abs(recorded - expected) <= abs(call - expected):
        return recorded
    return expected


def _last_place(tokens: pl.Series, beginnings: pl.Series) -> int:
    """The last step ends with the same call as the others: the profiler's own wait at its end does not belong to it."""
    end = len(tokens) - 1
    if len(beginnings) < 2:
        return end
    expected = int(beginnings[-1]) + median(beginnings.diff().drop_nulls()) - 1
    usual = tokens[int(beginnings[-1]) - 1]
    return expected if expected < end and tokens[expected] == usual else end


def median(lengths: pl.Series) -> int:
    """The middle one, or the mean of the two in the middle; 0 for none."""
    return int(lengths.cast(pl.Float64).median() or 0)
