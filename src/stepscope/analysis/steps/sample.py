"""Which steps of a long recording the findings look at: consecutive ones whose account is that of all steps.

The account itself, and every table, is of all steps. Slow steps do not count in it: they are a finding of their own, and
that one looks at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.usual import outliers
from stepscope.lazy import dataclass
from stepscope.registers.policy.steps import (
    SAMPLE_DIFFERS,
    SAMPLE_EVENTS,
    SAMPLE_STEPS,
    SAMPLED_FROM_EVENTS,
)
from stepscope.trace.part import new_numbers, part_of
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Sample:
    """The first and the last step of the excerpt, and how many of all steps are in it."""

    first: int
    last: int
    count: int
    of: int


def choose_sample(parts: pl.DataFrame, windows: pl.DataFrame, events: int) -> Sample | None:
    """The shortest excerpt that stands for all steps; None where all of them should be looked at.

    `parts` (step, part, ns) and `windows` are those of the critical device, `events` are those of the recording.
    """
    if events < SAMPLED_FROM_EVENTS or not windows.sort("start_ns")["step"].is_sorted():
        return None
    whole = windows.filter(~pl.col("partial"))["step"]
    table = _usual_steps(parts.filter(pl.col("step").is_in(whole.implode())))
    for length in _lengths(len(table), events):
        place = _most_alike(table.drop("step"), length)
        if place is not None:
            steps = table["step"].slice(place, length)
            first, last = int(steps[0]), int(steps[-1])
            count = int(whole.is_between(first, last).sum())
            return Sample(first, last, count, len(windows))
    return None


def _usual_steps(parts: pl.DataFrame) -> pl.DataFrame:
    """step, and a column with the time of each part; without slow steps."""
    slow = outliers(parts.group_by("step").agg(pl.col("ns").sum()))["step"]
    usual = parts.filter(~pl.col("step").is_in(slow.implode())).cast({"part": pl.String})
    table = usual.pivot("part", index="step", values="ns", aggregate_function="sum")
    return table.fill_null(0).sort("step")


def _lengths(steps: int, events: int) -> Iterator[int]:
    """Steps of a excerpt, longer and longer, as long as it saves half of the work."""
    length = max(SAMPLE_STEPS, -(-SAMPLE_EVENTS * steps // events))
    while 2 * length <= steps:
        yield length
        length *= 2


def _most_alike(table: pl.DataFrame, length: int) -> int | None:
    """Where the excerpt begins whose mean step is most like that of all; None where it differs too much."""
    columns = [pl.col(name) for name in table.columns]
    differs = pl.sum_horizontal((each.rolling_mean(length) - each.mean()).abs() for each in columns)
    share = table.select(differs / pl.sum_horizontal(each.mean() for each in columns)).to_series()
    place = share.slice(length - 1).arg_min()  # before, the excerpt would begin before the first step
    return None if place is None or share[place + length - 1] > SAMPLE_DIFFERS else place


@dataclass(frozen=True)
class Excerpt:
    """A part of a recording: its trace and steps, and for each event of the recording its number there."""

    trace: Trace
    steps: Steps
    number: pl.Series

    def renumber(self, slices: pl.DataFrame) -> pl.DataFrame:
        """Slices of an account that name the events of the recording, by their numbers in the excerpt."""
        return slices.with_columns(
            self.number.gather(slices[name]).alias(name) for name in ("named_by", "detail")
        )


def cut_sample(trace: Trace, steps: Steps, sample: Sample) -> Excerpt:
    """The recording of the excerpt and of a step on either side, in which its gaps begin and its device work ends."""
    numbers = steps.windows["step"].unique().sort()
    place = numbers.search_sorted(sample.first), numbers.search_sorted(sample.last)
    low = int(numbers[max(0, place[0] - 1)])
    high = int(numbers[min(len(numbers) - 1, place[1] + 1)])
    near = pl.col("step").is_between(low, high)
    found = replace(steps, host=steps.host.filter(near), windows=steps.windows.filter(near))
    spans = pl.concat([found.host.select("start_ns", "end_ns"), found.windows.select("start_ns", "end_ns")])
    start, end = spans.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    reaches = (pl.col("start_ns") < end) & (pl.col("start_ns") + pl.col("dur_ns") >= start)
    ids = trace.events.filter(reaches)["id"]
    return Excerpt(part_of(trace, ids, start, end), found, new_numbers(len(trace.events), ids))
