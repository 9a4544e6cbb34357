"""Rows of a diff: a figure of both runs per step, the difference, its noise, and whether it is significant."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.diffs.data.match import Key, Level, Pair, match
from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import CELL, Samples, TableName
from stepscope.diffs.noise.between_runs import LAGGING, RUN_NOISE_UNKNOWN, Runs
from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.estimate import RunNoise, estimate_between, estimate_noise
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, Speeds
from stepscope.registers.calibration.runs import EXACT_ERRORS, EXACT_LEAST, EXACT_SHARE
from stepscope.registers.policy.diffs import LEAST_DIFFERENCE, SLIVER
from stepscope.statistics.noise import Noise
from stepscope.statistics.significance import OF_FAMILY, select_significant
from stepscope.statistics.student_t import MANY

Vectors = dict[Key, list[float]]
ClockOf = Callable[[Key], str]
NoiseOf = Callable[[Key, float], RunNoise]


@dataclass(frozen=True)
class Ground:
    """What all rows of a diff are judged by."""

    a: Samples
    b: Samples
    speeds: Speeds
    is_exact: bool = False  # both are one recording: every difference is real

    def estimate_noise(self, a: Sequence[float], b: Sequence[float], run: RunNoise) -> Noise | None:
        """The noise of the difference of these figures, at equal speed."""
        if self.is_exact:
            rounded = EXACT_SHARE * max(abs(average(a)), abs(average(b)))
            return Noise(math.hypot(rounded, EXACT_LEAST * self.step_ns / EXACT_ERRORS), MANY)
        return estimate_noise(a, b, self.layouts, run)

    def find_growth_noise(self, a: Sequence[float], b: Sequence[float]) -> float | None:
        """The margin of a growth by what recordings of one side differ by; None where neither has several."""
        noise = None if self.is_exact else estimate_between(a, b, self.layouts)
        return noise.margin_above if noise else None

    def find_margin(self, noise: Noise | None) -> float | None:
        """The margin to show: rounding is not noise."""
        return 0.0 if self.is_exact else noise.margin if noise else None

    @property
    def small_ns(self) -> float:
        """Shorter figures are not judged."""
        return 0.0 if self.is_exact else SLIVER * self.step_ns

    @property
    def least_ns(self) -> float:
        """Smaller differences do not matter."""
        return (EXACT_LEAST if self.is_exact else LEAST_DIFFERENCE) * self.step_ns

    @cached_property
    def layouts(self) -> tuple[Layout, Layout]:
        """Which step and rank each figure of both runs is of."""
        return Layout(self.a.cells), Layout(self.b.cells)

    @cached_property
    def step_ns(self) -> float:
        """The longer of the mean steps: the reference for what is small."""
        return max(self._mean_steps, default=1.0)

    @cached_property
    def _mean_steps(self) -> list[float]:
        means = [side.cells["ns"].mean() for side in (self.a, self.b)]
        return [float(value) for value in means if isinstance(value, float | int)]

    @cached_property
    def runs(self) -> Runs:
        """The variation between runs of one job."""
        lagging = [
            float(side.parts.filter(pl.col("part").is_in(LAGGING))["ns"].sum()) / max(1, len(side.cells))
            for side in (self.a, self.b)
        ]
        return Runs(self.speeds, self.step_ns, min(self._mean_steps, default=1.0), max(lagging))

    def even_out(self, values: Sequence[float], clock: str, side: str) -> list[float]:
        """The values had host and device been as fast as usual."""
        factors = (self.speeds.a if side == "a" else self.speeds.b).get(clock)
        if factors is None:
            return list(values)
        return [value / factor for value, factor in zip(values, factors, strict=True)]


@dataclass
class Measured:
    """A row, and what it is judged by: both runs at equal speed, cell by cell."""

    row: Row
    pair: Pair
    noise: Noise | None
    clock: str


@dataclass(frozen=True)
class Measure:
    """Which figures of the samples to compare: their table and column, the key of a row, and what rows are matched by.

    `noise_of`: the run-to-run noise by key and size; that of ops where it is None.
    """

    table: TableName
    key: Sequence[str]
    value: str
    levels: Sequence[Level]
    clock_of: ClockOf
    noise_of: NoiseOf | None = None
    has_limits: bool = False  # a gate may limit their growth


def collect_vectors(frame: pl.DataFrame, key: Sequence[str], value: str, cells: pl.DataFrame) -> Vectors:
    """For every key its figure in each cell, 0 where it does not occur."""
    places = cells.select(*CELL).with_row_index("place")
    sums = (
        frame.join(places, on=list(CELL), maintain_order="left")
        .group_by(*key, "place", maintain_order=True)
        .agg(pl.col(value).sum())
    )
    count = len(cells)
    vectors: defaultdict[Key, list[float]] = defaultdict(lambda: [0.0] * count)
    for *name, place, amount in sums.select(*key, "place", value).iter_rows():
        vectors[tuple(name)][place] = float(amount or 0)
    return dict(vectors)


def sum_vectors(vectors: Vectors, keys: Sequence[Key], count: int) -> list[float]:
    """The figures of several keys as one, for that number of cells."""
    if len(keys) == 1:
        return vectors[keys[0]]
    return [sum(vectors[key][place] for key in keys) for place in range(count)]


def average(values: Sequence[float]) -> float:
    """The mean; 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def measure_rows(ground: Ground, what: Measure) -> list[Measured]:
    """One for each pair of rows, the largest difference first."""
    a, b = (
        collect_vectors(side.table(what.table), what.key, what.value, side.cells)
        for side in (ground.a, ground.b)
    )
    rows = [_measure_pair(ground, pair, a, b, what) for pair in match(a, b, what.levels)]
    return sorted(rows, key=lambda each: (-abs(each.row.difference), each.row.name, each.pair.by))


def _measure_pair(ground: Ground, pair: Pair, a: Vectors, b: Vectors, what: Measure) -> Measured:
    clock = what.clock_of(pair.key)
    ours = sum_vectors(a, pair.a, len(ground.a.cells)) if pair.a else [0.0] * len(ground.a.cells)
    theirs = sum_vectors(b, pair.b, len(ground.b.cells)) if pair.b else [0.0] * len(ground.b.cells)
    row = make_row(str(pair.key[0]), ours if pair.a else None, theirs if pair.b else None)
    row.matched_by = pair.by
    even = ground.even_out(ours, clock, "a"), ground.even_out(theirs, clock, "b")
    row.at_equal_speed = average(even[1]) - average(even[0])
    larger = max(abs(row.a or 0), abs(row.b or 0))
    run = what.noise_of(pair.key, larger) if what.noise_of else ground.runs.of_op(clock)
    noise = ground.estimate_noise(*even, run) if larger >= ground.small_ns else None
    row.noise = ground.find_margin(noise)
    row.growth_noise = ground.find_growth_noise(ours, theirs) if what.has_limits else None
    return Measured(row, pair, noise, clock)


def make_row(name: str, a: Sequence[float] | None, b: Sequence[float] | None, unit: str = "ns") -> Row:
    """Means over the cells; None for what a run does not have."""
    first, second = (None if values is None else average(values) for values in (a, b))
    difference = (second or 0) - (first or 0)
    return Row(
        name=name,
        a=first,
        b=second,
        difference=difference,
        relative=difference / first if first else None,
        unit=unit,
    )


def judge_rows(ground: Ground, rows: Sequence[Measured], level: float = OF_FAMILY) -> None:
    """Mark what is significant. What is too small to matter is not tested, and so costs the others no power."""
    tested = [each for each in rows if max(abs(each.row.a or 0), abs(each.row.b or 0)) >= ground.small_ns]
    significant = select_significant([_find_p_value(each) for each in tested], level)
    for each, is_significant in zip(tested, significant, strict=True):
        matters = abs(each.row.at_equal_speed or 0) >= ground.least_ns
        each.row.significant = is_significant and matters


def _find_p_value(each: Measured) -> float:
    """With a single step on a side only the device's time is judged, by the usual run-to-run noise: one step of a host shows nothing."""
    difference = each.row.at_equal_speed or 0.0
    if each.noise is not None:
        return each.noise.p_value(difference)
    if each.clock != DEVICE:
        return 1.0
    larger = max(abs(each.row.a or 0), abs(each.row.b or 0))
    error = 2 * RUN_NOISE_UNKNOWN[each.clock] * larger
    return math.erfc(abs(difference) / error / math.sqrt(2)) if error else 1.0


def measure_step(ground: Ground, parts: Mapping[str, str]) -> Measured:
    """The mean step. At equal speed it is the sum of its parts, each by its own clock (`parts`: part to clock)."""
    durations = ground.a.cells["ns"].to_list(), ground.b.cells["ns"].to_list()
    row = make_row("step", *durations)
    row.growth_noise = ground.find_growth_noise(*durations)
    sums = []
    sizes: dict[str, float] = {}
    for name, side in (("a", ground.a), ("b", ground.b)):
        total = [0.0] * len(side.cells)
        for (part,), values in collect_vectors(side.parts, ["part"], "ns", side.cells).items():
            clock = parts.get(str(part), HOST)
            even = ground.even_out(values, clock, name)
            total = [x + y for x, y in zip(total, even, strict=True)]
            sizes[clock] = max(sizes.get(clock, 0.0), 0.0) + average(even) / 2
        sums.append(total)
    row.at_equal_speed = average(sums[1]) - average(sums[0])
    noise = ground.estimate_noise(sums[0], sums[1], ground.runs.of_step(sizes))
    row.noise = ground.find_margin(noise)
    return Measured(row, Pair((), (), "step"), noise, HOST)
