"""Which arguments of a program that runs several times in a step are the same in several runs.

A profile has no values. An argument that is another one in each call must have come from somewhere: it was copied to the device, or a
program returned it. What arrives less often than the program runs is used by several runs; what never arrives is a weight, or data that
lay on the device before, of which nothing is known.
"""

from __future__ import annotations

import math
from collections import Counter

import polars as pl

from stepscope.analysis.xla.arguments import Argument, arguments_of, results_of
from stepscope.analysis.xla.hlo_module import Shape, read_module
from stepscope.analysis.xla.ops import events_of_programs, programs_that_ran
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import REPEATED_CALLS_LEAST
from stepscope.trace.trace import Trace

Array = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class RepeatedCalls:
    """A program, what changes from call to call, what does not, and how many new ones of that a step has (1 or more)."""

    name: str
    hlo: bytes
    calls: float
    changing: frozenset[int]
    same: tuple[Argument, ...]
    arriving: int


def repeated_calls(trace: Trace, device: int, steps: int) -> list[RepeatedCalls]:
    """The programs that each of the steps runs several times, with arguments that several runs share."""
    runs = runs_of_programs(trace, device)
    often = [name for name, count in runs.items() if count >= REPEATED_CALLS_LEAST * steps]
    if not often:
        return []
    codes = codes_by_name(trace)
    arrivals = Arrivals(trace, runs, codes)
    found = [_calls(name, codes[name], runs[name], steps, arrivals) for name in often if name in codes]
    return [one for one in found if one is not None]


def codes_by_name(trace: Trace) -> dict[str, set[bytes]]:
    """The code of the programs that ran; several may have one name."""
    codes: dict[str, set[bytes]] = {}
    for name, _, hlo in programs_that_ran(trace):
        codes.setdefault(name, set()).add(hlo)
    return codes


def runs_of_programs(trace: Trace, device: int) -> dict[str, int]:
    """How often each program ran in the steps, on this device."""
    events, tracks = trace.events, trace.tracks
    mine = tracks.filter(pl.col("device") == device)["id"]
    runs = events.filter(
        pl.col("kind") == "module", pl.col("step").is_not_null(), pl.col("track").is_in(mine.implode())
    )
    counted = runs.group_by(pl.col("name").cast(pl.String), maintain_order=True).len()
    return dict(counted.iter_rows())


def _calls(name: str, codes: set[bytes], runs: int, steps: int, arrivals: Arrivals) -> RepeatedCalls | None:
    """None where nothing is the same in several calls, or nothing changes; nor of several programs with one name."""
    if len(codes) != 1 or arrivals.unknown > MAJORITY * runs:
        return None
    (hlo,) = codes
    module = read_module(hlo)
    given, returned = arguments_of(module), {_array(one) for one in results_of(module)}
    counts = {one.number: arrivals.of(one) for one in given}
    carried = [one for one in given if _array(one.shape) in returned]
    same = tuple(
        one
        for one in given
        if 0 < counts[one.number] <= MAJORITY * runs and one not in carried and not one.is_small
    )
    samples = {one.shape.sizes[0] for one in (*carried, *same) if one.shape.sizes}
    weights = [
        one for one in given if not counts[one.number] and one not in carried and _is_weight(one, samples)
    ]
    changing = frozenset(one.number for one in given) - {one.number for one in (*same, *weights)}
    if not same or not changing:
        return None
    alike = Counter(one.bytes for one in same)
    arriving = max(math.ceil(counts[one.number] / alike[one.bytes] / steps) for one in same)
    return RepeatedCalls(name, hlo, runs / steps, changing, same, arriving)


def _is_weight(one: Argument, samples: set[int]) -> bool:
    """Whether it may be one of the arrays that never change; one number for each sample is the time of a sampler, or its like."""
    by_sample = len(one.shape.sizes) == 1 and one.shape.sizes[0] in samples
    return one.may_be_weight and not one.is_small and not by_sample


class Arrivals:
    """How often something new of a size or shape is there in the steps: copied to the device, or returned by a program."""

    def __init__(self, trace: Trace, runs: dict[str, int], codes: dict[str, set[bytes]]) -> None:
        self._copied = copied_to_device(trace)
        self._returned: Counter[Array] = Counter()
        self.unknown = sum(count for name, count in runs.items() if name not in codes)
        for name, hlos in codes.items():
            for hlo in hlos:
                for shape in results_of(read_module(hlo)):
                    self._returned[_array(shape)] += runs.get(name, 0)

    def of(self, one: Argument) -> int:
        """How many arrays that this argument may be have arrived."""
        return self._copied.get(one.bytes, 0) + self._returned[_array(one.shape)]


def copied_to_device(trace: Trace) -> dict[int, int]:
    """How many copies of each size were made in steps, other than those that programs make and those to the host."""
    events, copies = trace.events, trace.copies
    inside = events_of_programs(trace).filter(pl.col("kind") == "copy")["event"]
    rows = copies.with_columns(
        kind=events["kind"].gather(copies["event"]), step=events["step"].gather(copies["event"])
    ).filter(
        pl.col("kind") == "copy",
        pl.col("step").is_not_null(),
        ~pl.col("event").is_in(inside.implode()),
        ~pl.col("direction").cast(pl.String).str.ends_with("toH").fill_null(False),
    )
    return dict(rows.drop_nulls("bytes").group_by("bytes").len().iter_rows())


def _array(shape: Shape) -> Array:
    return shape.element, shape.sizes
