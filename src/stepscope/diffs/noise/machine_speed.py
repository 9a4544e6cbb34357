"""How fast host and device were in each step, so that a slower machine is not taken for slower code.

The same call takes longer when the host's clock is lower, when another process is busy or when the device throttles. The speed
of a step is the median, over the ops that both runs have, of (their time in the step / the usual time of the same calls in both
runs). One op that got slower does not move that median, whatever its share of the time or of the kernels. Calls are the same if
they are of one kind: an op's name on the host (with its shapes where the host computes), and kernel, op and grid on the device.
Where enough kinds take more than a sliver of the step, only those count: other load on the machine costs long calls more than
short ones. Kernels that a graph or a compiled program launches all have its name as their op: there each kernel's name stands for
itself. Where the calls that both runs have are the smaller part of their device time, as with another number format, they do not
represent the rest. With another batch, the same grid is not the same work (a kernel with as many blocks as the device has takes
longer for more): there only ops of the same shapes count, such as those of an optimizer, provided that the main number format is
the same. Where too few remain, the speed of the device is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from stepscope.diffs.data.model import Speed
from stepscope.diffs.data.samples import CELL, Samples
from stepscope.diffs.noise.scatter import CALLS, Scatter, estimate_scatter
from stepscope.registers.calibration.profiler import SHORTEST_CALL_NS
from stepscope.registers.levels import FEWEST_SPEED_KINDS, FEWEST_SPEED_NAMES
from stepscope.registers.policy.diffs import SAME_GRIDS, SAME_KERNELS, SLIVER, SLOWEST_SPEED
from stepscope.trace.frames import conform, take_mean

DEVICE, HOST, NEITHER = "device", "host", ""
_OF_PARTS = {
    "compute": DEVICE, "copy": DEVICE, "collective": NEITHER, "device_gap": NEITHER, "host_collective": NEITHER, "unrecorded": NEITHER,
}  # fmt: skip
# The usual time of a kind of calls, and the larger share of the step that it takes in one of the runs.
USUAL = {"key": pl.UInt64, "usual": pl.Float64, "share": pl.Float64}
Sides = tuple[Samples, Samples]


@dataclass(frozen=True)
class Speeds:
    """By run, a factor for each of its cells, for host and for device; 1 is the usual speed. Empty where it is unknown.

    `changes`: the speed of B relative to A. `scatter`: how much times of names vary between recordings at equal speed, see `scatter`.
    """

    a: dict[str, list[float]] = field(default_factory=dict)
    b: dict[str, list[float]] = field(default_factory=dict)
    changes: list[Speed] = field(default_factory=list)
    scatter: dict[str, Scatter] = field(default_factory=dict)

    def knows(self, clock: str) -> bool:
        """Whether the speed of host or device is known."""
        return clock in self.a

    def ratio(self, clock: str) -> float:
        """How much longer B's host or device took for the same call; 1 where that is unknown."""
        return next((each.ratio for each in self.changes if each.what == clock), 1.0)


def find_clock(part: str) -> str:
    """The clock that a part's time follows: the device's, the host's or neither."""
    return _OF_PARTS.get(part, HOST)


def estimate_speeds(a: Samples, b: Samples, *, same_work: bool = True) -> Speeds:
    """Of the host by its ops, of the device by its kernels; by ops of the same shapes where the batch differs."""
    sides = a, b
    has_device = bool(a.kernels["ns"].sum() and b.kernels["ns"].sum())
    op_key = ["name"] if has_device else ["name", "shapes"]
    speeds = Speeds()
    calls = [_sum_calls(side.ops, op_key, "name", "host_ns") for side in sides]
    _add_clock(speeds, HOST, calls, sides, [] if has_device else [_list_charged(side) for side in sides])
    if has_device and same_work and _have_same_grids(a, b):
        calls = _sum_kernel_calls(a, b)
        if _are_most_calls_common(calls):
            _add_clock(speeds, DEVICE, calls, sides, [])
    elif has_device and _find_main_precision(a) == _find_main_precision(b):
        shaped = [side.ops.filter(pl.col("shapes").is_not_null(), pl.col("device_ns") > 0) for side in sides]
        calls = [_sum_calls(ops, ["name", "shapes"], "name", "device_ns") for ops in shaped]
        _add_clock(speeds, DEVICE, calls, sides, [])
    return speeds


def _have_same_grids(a: Samples, b: Samples) -> bool:
    """Whether kernels that both runs have were mostly launched with the same grids: otherwise they do different work, even if no shapes show it."""
    key = ["name", "op"]
    sides = [side.kernels.group_by(*key, "launch").agg(pl.col("ns").sum()) for side in (a, b)]
    for ours, theirs in (sides, sides[::-1]):
        common = ours.join(theirs, on=key, how="semi", nulls_equal=True)
        alike = common.join(theirs, on=[*key, "launch"], how="semi", nulls_equal=True)
        if int(alike["ns"].sum()) < SAME_GRIDS * int(common["ns"].sum()):
            return False
    return True


def _find_main_precision(side: Samples) -> str | None:
    """The number format with most of the time of matrix products: with another one, ops of the same shapes move other amounts of bytes."""
    by_format = side.products.group_by("precision", maintain_order=True).agg(pl.col("ns").sum())
    formats: list[str | None] = by_format.sort("ns", descending=True, maintain_order=True)[
        "precision"
    ].to_list()
    return formats[0] if formats else None


def _sum_kernel_calls(a: Samples, b: Samples) -> list[pl.DataFrame]:
    key = ["name", "op", "launch"]
    has_ops = min(side.kernels["op"].n_unique() for side in (a, b)) >= FEWEST_SPEED_KINDS
    return [_sum_calls(side.kernels, key, "op" if has_ops else "name", "ns") for side in (a, b)]


def _are_most_calls_common(calls: Sequence[pl.DataFrame]) -> bool:
    """Whether the calls that both runs have are most of what either did."""
    for ours, theirs in (calls, calls[::-1]):
        common = ours.join(theirs, on="key", how="semi")
        if int(common["ns"].sum()) < SAME_KERNELS * int(ours["ns"].sum()):
            return False
    return True


def _add_clock(
    speeds: Speeds, clock: str, all_calls: Sequence[pl.DataFrame], sides: Sides, more: Sequence[pl.DataFrame]
) -> None:
    """Add the speed and the scatter of host or device. `more`: names that count for the scatter, but not for the speed."""
    both = all_calls[0].select("key").unique().join(all_calls[1].select("key").unique(), on="key")
    calls = [each.join(both, on="key", how="semi") for each in all_calls]
    usual = _find_usual(calls, sides)
    names = calls[0].join(usual, on="key", how="semi")["name"].n_unique()
    if len(usual) < FEWEST_SPEED_KINDS and names < FEWEST_SPEED_NAMES:
        return
    factors = [_measure_factors(each, usual, side.cells) for each, side in zip(calls, sides, strict=True)]
    speeds.a[clock], speeds.b[clock] = factors
    means = [sum(values) / len(values) for values in factors]
    speeds.changes.append(Speed(what=clock, ratio=round(means[1] / means[0], 4), kinds=len(usual)))
    counted = [each.join(usual, on="key", how="semi") for each in calls]
    if more:
        counted = [pl.concat(each) for each in zip(counted, more, strict=True)]
    scatter = estimate_scatter(counted, sides, factors)
    if scatter is not None:
        # Other load on a host that computes slows all names at once: nothing averages out.
        speeds.scatter[clock] = Scatter(scatter.of_one, scatter.of_one) if more else scatter


def _list_charged(side: Samples) -> pl.DataFrame:
    """The names that the account charges, as calls (CALLS): where the host computes, these are its work as well."""
    step = float(side.cells["ns"].sum())
    sums = side.names.group_by("part", "name").agg(pl.col("ns").sum())
    long = side.names.join(
        sums.filter(pl.col("ns") >= SLIVER * step), on=["part", "name"], how="semi", nulls_equal=True
    )
    named = long.with_columns(
        name=pl.concat_str("part", "name", separator=": "),
        calls=pl.lit(1),
        key=pl.lit(None),
        per_call=pl.lit(None),
    )
    return conform(named, CALLS)


def _find_usual(calls: Sequence[pl.DataFrame], sides: Sides) -> pl.DataFrame:
    """USUAL: the kinds of calls that show the speed."""
    step = max(take_mean(side.cells["ns"]) for side in sides)
    each = [
        rows.group_by("key", maintain_order=True).agg(
            pl.col("per_call").median(), share=pl.col("ns").sum() / max(1, len(side.cells)) / max(step, 1.0)
        )
        for rows, side in zip(calls, sides, strict=True)
    ]
    usual = (
        pl.concat(each)
        .group_by("key", maintain_order=True)
        .agg(usual=pl.col("per_call").mean(), share=pl.col("share").max())
        .filter(pl.col("usual") >= SHORTEST_CALL_NS)
    )
    long = usual.filter(pl.col("share") >= SLIVER)
    return conform(long if len(long) >= FEWEST_SPEED_KINDS else usual, USUAL)


def _sum_calls(rows: pl.DataFrame, key: Sequence[str], name: str, time: str) -> pl.DataFrame:
    """CALLS: in each cell, the time and the number of the calls of each kind."""
    sums = (
        rows.group_by(*CELL, *key, maintain_order=True)
        .agg(pl.col(time, "calls").sum())
        .filter(pl.col("calls") > 0)
    )
    kinds = sums.select(
        *CELL,
        "calls",
        key=pl.struct(key).hash(),
        name=pl.coalesce(pl.col(name), pl.col("name")),
        ns=pl.col(time),
        per_call=pl.col(time) / pl.col("calls"),
    )
    return conform(kinds, CALLS)


def _measure_factors(calls: pl.DataFrame, usual: pl.DataFrame, cells: pl.DataFrame) -> list[float]:
    """For each cell, how much longer than usual its calls took."""
    expected = (pl.col("usual") * pl.col("calls")).sum()
    by_name = calls.join(usual, on="key").group_by(*CELL, "name").agg(factor=pl.col("ns").sum() / expected)
    by_cell = by_name.group_by(*CELL).agg(pl.col("factor").median())
    factors: list[float] = (
        cells.join(by_cell, on=list(CELL), how="left", maintain_order="left")["factor"]
        .fill_null(1.0)
        .to_list()
    )
    return [max(value, SLOWEST_SPEED) for value in factors]
