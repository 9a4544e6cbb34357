"""Rows of a diff: a figure of both runs per step, the difference, its noise, and whether it is more than that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.diffs.data.match import Key, Level, Pair, match
from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import CELL, Samples
from stepscope.diffs.noise.between_runs import LAGGING, RUN_NOISE_UNKNOWN, Runs
from stepscope.diffs.noise.bootstrap import Draws, Noise, RunNoise, draws, noise_of, surely
from stepscope.diffs.noise.machine_speed import HOST, SLIVER, Speeds
from stepscope.statistics.student_t import MANY

# Of the risk that a pair of equal runs shows any significant difference, each kind of rows has a part.
LEVEL = 0.05 / 6
# Figures below this share of the step are not judged; nor are differences below the other.
SMALL = SLIVER
LEAST = 0.002
# Where nothing is chance, only that times are rounded stands in the way: of a figure and, of the step, of any difference.
EXACT_SHARE, EXACT_LEAST = 2e-4, 2e-5

Vectors = dict[Key, list[float]]
NoiseOf = Callable[[Key, float], RunNoise]


@dataclass(frozen=True)
class Ground:
    """What all rows of a diff stand on."""

    a: Samples
    b: Samples
    speeds: Speeds
    is_exact: bool = False  # both are one recording: no difference is chance

    def noise(self, a: Sequence[float], b: Sequence[float], run: RunNoise) -> Noise | None:
        """What the difference of these figures, at equal speed, may be by chance."""
        if self.is_exact:
            rounded = EXACT_SHARE * max(abs(mean(a)), abs(mean(b)))
            return Noise(math.hypot(rounded, EXACT_LEAST * self.step_ns / 4), MANY)
        return noise_of(a, b, *self.draws, run)

    def margin(self, noise: Noise | None) -> float | None:
        """What is told of it: rounding is no chance."""
        return 0.0 if self.is_exact else noise.margin if noise else None

    @property
    def small_ns(self) -> float:
        """Shorter figures are not judged."""
        return 0.0 if self.is_exact else SMALL * self.step_ns

    @property
    def least_ns(self) -> float:
        """Smaller differences do not matter."""
        return (EXACT_LEAST if self.is_exact else LEAST) * self.step_ns

    @cached_property
    def draws(self) -> tuple[Draws, Draws]:
        """The resamples of both runs: the same for all figures, so that sums stay sums."""
        return draws(self.a.cells), draws(self.b.cells, seed=7)

    @cached_property
    def step_ns(self) -> float:
        """The longer of the mean steps: what small is measured by."""
        return max(self._steps, default=1.0)

    @cached_property
    def _steps(self) -> list[float]:
        means = [side.cells["ns"].mean() for side in (self.a, self.b)]
        return [float(value) for value in means if isinstance(value, float | int)]

    @cached_property
    def runs(self) -> Runs:
        """What runs of one job differ by."""
        lagging = [
            float(side.parts.filter(pl.col("part").is_in(LAGGING))["ns"].sum()) / max(1, len(side.cells))
            for side in (self.a, self.b)
        ]
        return Runs(self.speeds, self.step_ns, min(self._steps, default=1.0), max(lagging))

    def even(self, values: Sequence[float], clock: str, side: str) -> list[float]:
        """The values had host and device been as fast as usual."""
        factors = (self.speeds.a if side == "a" else self.speeds.b).get(clock)
        return (
            list(values)
            if factors is None
            else [value / factor for value, factor in zip(values, factors, strict=True)]
        )


@dataclass
class Measured:
    """A row, and what it is judged by: both runs at equal speed, cell by cell."""

    row: Row
    pair: Pair
    noise: Noise | None
    clock: str


def vectors(frame: pl.DataFrame, key: Sequence[str], value: str, cells: pl.DataFrame) -> Vectors:
    """For every key its figure in each cell, 0 where it does not occur."""
    places = cells.select(*CELL).with_row_index("place")
    summed = (
        frame.join(places, on=list(CELL), maintain_order="left")
        .group_by(*key, "place", maintain_order=True)
        .agg(pl.col(value).sum())
    )
    found: Vectors = {}
    for *name, place, amount in summed.select(*key, "place", value).iter_rows():
        found.setdefault(tuple(name), [0.0] * len(cells))[place] = float(amount or 0)
    return found


def summed(all_of: Vectors, keys: Sequence[Key], count: int) -> list[float]:
    """The figures of several keys as one."""
    if len(keys) == 1:
        return all_of[keys[0]]
    return [sum(all_of[key][place] for key in keys) for place in range(count)]


def mean(values: Sequence[float]) -> float:
    """0 for none."""
    return sum(values) / len(values) if values else 0.0


def measured(
    ground: Ground,
    table: str,
    key: Sequence[str],
    value: str,
    levels: Sequence[Level],
    clock_of: Callable[[Key], str],
    noise_by: NoiseOf | None = None,
) -> list[Measured]:
    """One for each pair of rows, the largest difference first. `noise_by`: what runs differ by, given the key and size."""
    frames = [getattr(side, table) for side in (ground.a, ground.b)]
    a = vectors(frames[0], key, value, ground.a.cells)
    b = vectors(frames[1], key, value, ground.b.cells)
    rows = [_measured(ground, pair, a, b, clock_of, noise_by) for pair in match(a, b, levels)]
    return sorted(rows, key=lambda each: (-abs(each.row.difference), each.row.name, each.pair.by))


def _measured(
    ground: Ground,
    pair: Pair,
    a: Vectors,
    b: Vectors,
    clock_of: Callable[[Key], str],
    noise_by: NoiseOf | None,
) -> Measured:
    name = (pair.b or pair.a)[0]
    clock = clock_of(name)
    ours = summed(a, pair.a, len(ground.a.cells)) if pair.a else [0.0] * len(ground.a.cells)
    theirs = summed(b, pair.b, len(ground.b.cells)) if pair.b else [0.0] * len(ground.b.cells)
    row = row_of(str(name[0]), ours if pair.a else None, theirs if pair.b else None)
    row.matched_by = pair.by
    even = ground.even(ours, clock, "a"), ground.even(theirs, clock, "b")
    row.at_equal_speed = mean(even[1]) - mean(even[0])
    larger = max(abs(row.a or 0), abs(row.b or 0))
    run = noise_by(name, larger) if noise_by else ground.runs.of_op(clock)
    noise = ground.noise(*even, run) if larger >= ground.small_ns else None
    row.noise = ground.margin(noise)
    return Measured(row, pair, noise, clock)


def row_of(name: str, a: Sequence[float] | None, b: Sequence[float] | None, unit: str = "ns") -> Row:
    """Means over the cells; None for what a run does not have."""
    first, second = (None if values is None else mean(values) for values in (a, b))
    difference = (second or 0) - (first or 0)
    return Row(
        name=name,
        a=first,
        b=second,
        difference=difference,
        relative=difference / first if first else None,
        unit=unit,
    )


def judge(ground: Ground, rows: Sequence[Measured], level: float = LEVEL) -> None:
    """Mark what is no accident. What is too small to matter is not tested, and so takes nothing from the others."""
    tested = [each for each in rows if max(abs(each.row.a or 0), abs(each.row.b or 0)) >= ground.small_ns]
    sure = surely([_chance(ground, each) for each in tested], level)
    for each, is_sure in zip(tested, sure, strict=True):
        matters = abs(each.row.at_equal_speed or 0) >= ground.least_ns
        each.row.significant = is_sure and matters


def _chance(ground: Ground, each: Measured) -> float:
    """With one step on a side, only what runs usually differ by can be held against the difference."""
    difference = each.row.at_equal_speed or 0.0
    if each.noise is not None:
        return each.noise.chance(difference)
    larger = max(abs(each.row.a or 0), abs(each.row.b or 0))
    error = 2 * RUN_NOISE_UNKNOWN[each.clock] * larger
    return math.erfc(abs(difference) / error / math.sqrt(2)) if error else 1.0


def step_row(ground: Ground, parts: Mapping[str, str]) -> Measured:
    """The mean step. At equal speed it is the sum of its parts, each by its own clock (`parts`: part to clock)."""
    row = row_of("step", ground.a.cells["ns"].to_list(), ground.b.cells["ns"].to_list())
    sums = []
    sizes: dict[str, float] = {}
    for name, side in (("a", ground.a), ("b", ground.b)):
        total = [0.0] * len(side.cells)
        for (part,), values in vectors(side.parts, ["part"], "ns", side.cells).items():
            clock = parts.get(str(part), HOST)
            even = ground.even(values, clock, name)
            total = [x + y for x, y in zip(total, even, strict=True)]
            sizes[clock] = max(sizes.get(clock, 0.0), 0.0) + mean(even) / 2
        sums.append(total)
    row.at_equal_speed = mean(sums[1]) - mean(sums[0])
    noise = ground.noise(sums[0], sums[1], ground.runs.of_step(sizes))
    row.noise = ground.margin(noise)
    return Measured(row, Pair((), (), "step"), noise, HOST)
