"""How fast host and device were in each step, so that a slower machine is not taken for slower code.

The same call takes longer when the host's clock is lower or a neighbour is busy, or when the device throttles. Speed of a
step = the median over all kinds of calls that both runs have of (its time per call in the step / its usual time per call
in both runs). One op that got slower does not move that median, whatever its share of the time. A kind is an op's name
on the host (with its shapes where the host computes), and kernel, op and grid on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.across.diff_model import Speed
from stepscope.across.diff_samples import CELL, Samples

FEWEST_KINDS = 8
# Shorter calls are as long as the profiler's own record of them.
SHORTEST_NS = 1_000
DEVICE, HOST, NEITHER = "device", "host", ""
_OF_PARTS = {
    "compute": DEVICE, "copy": DEVICE, "collective": NEITHER, "device_gap": NEITHER, "host_collective": NEITHER, "unrecorded": NEITHER,
}  # fmt: skip


@dataclass(frozen=True)
class Speeds:
    """By run, a factor for each of its cells and for host and device; 1 is the usual. Empty where it is not known."""

    a: dict[str, list[float]]
    b: dict[str, list[float]]
    found: list[Speed]

    def knows(self, what: str) -> bool:
        """Whether the speed of host or device could be told."""
        return what in self.a


def clock_of(part: str) -> str:
    """Whose speed a part's time goes by: the device's, the host's or neither's."""
    return _OF_PARTS.get(part, HOST)


def speeds(a: Samples, b: Samples) -> Speeds:
    """Of the host by its ops, of the device by its kernels."""
    has_device = bool(a.kernels["ns"].sum() and b.kernels["ns"].sum())
    op_key = ["name"] if has_device else ["name", "shapes"]
    found = Speeds({}, {}, [])
    _add(found, HOST, _per_call(a.ops, op_key, "host_ns"), _per_call(b.ops, op_key, "host_ns"), a, b)
    if has_device:
        key = ["name", "op", "launch"]
        _add(found, DEVICE, _per_call(a.kernels, key, "ns"), _per_call(b.kernels, key, "ns"), a, b)
    return found


def _add(
    found: Speeds, what: str, a_calls: pl.DataFrame, b_calls: pl.DataFrame, a: Samples, b: Samples
) -> None:
    both = a_calls.select("key").unique().join(b_calls.select("key").unique(), on="key")
    sides = [calls.join(both, on="key", how="semi") for calls in (a_calls, b_calls)]
    medians = [side.group_by("key", maintain_order=True).agg(pl.col("per_call").median()) for side in sides]
    usual = pl.concat(medians).group_by("key", maintain_order=True).agg(usual=pl.col("per_call").mean())
    usual = usual.filter(pl.col("usual") >= SHORTEST_NS)
    if len(usual) < FEWEST_KINDS:
        return
    factors = [_by_cell(side, usual, samples.cells) for side, samples in zip(sides, (a, b), strict=True)]
    found.a[what], found.b[what] = factors
    means = [sum(values) / len(values) for values in factors]
    found.found.append(Speed(what=what, ratio=round(means[1] / means[0], 4), kinds=len(usual)))


def _per_call(rows: pl.DataFrame, key: list[str], time: str) -> pl.DataFrame:
    """rank, step, key, per_call."""
    summed = (
        rows.group_by(*CELL, *key, maintain_order=True)
        .agg(pl.col(time, "calls").sum())
        .filter(pl.col("calls") > 0)
    )
    return summed.select(
        *CELL,
        key=pl.struct(key).hash(),
        per_call=pl.col(time) / pl.col("calls"),
    )


def _by_cell(calls: pl.DataFrame, usual: pl.DataFrame, cells: pl.DataFrame) -> list[float]:
    ratio = pl.col("per_call") / pl.col("usual")
    by_cell = calls.join(usual, on="key").group_by(*CELL).agg(factor=ratio.median())
    found: list[float] = (
        cells.join(by_cell, on=list(CELL), how="left", maintain_order="left")["factor"]
        .fill_null(1.0)
        .to_list()
    )
    return [max(value, 0.01) for value in found]
