"""How fast host and device were in each step, so that a slower machine is not taken for slower code.

The same call takes longer when the host's clock is lower or a neighbour is busy, or when the device throttles. Speed of a
step = the median over ops that both runs have of (their time in the step / what the same calls usually take in both runs).
One op that got slower does not move that median, whatever its share of the time or of the kernels. Calls are the same if they are
of one kind: an op's name on the host (with its shapes where the host computes), and kernel, op and grid on the device. Where
enough kinds take more than a sliver of the step, only those count: a busy neighbour costs long calls more than short ones.
Kernels that a graph or a compiled program launches all have its name for an op: there each kernel's name stands for itself. And where
what both runs have is the smaller part of what their device did, as in another number format, it does not speak for the rest.
Of runs with another batch, the same grid is not the same work (a kernel of as many blocks as the device has takes longer for more):
there only ops of the same shapes tell, such as those of an optimizer, if their numbers are of the same size as well. Where too few do,
no speed of the device is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.model import Speed
from stepscope.diffs.data.samples import CELL, Samples
from stepscope.diffs.noise.scatter import Scatter, scatter

FEWEST_KINDS = 8
FEWEST_NAMES = 3
SLIVER = 0.004  # of the step
SAME_GRIDS = 0.5  # of the time of kernels that both have
SAME_KERNELS = 0.5  # of the time of all kernels
# Shorter calls are as long as the profiler's own record of them.
SHORTEST_NS = 1_000
DEVICE, HOST, NEITHER = "device", "host", ""
_OF_PARTS = {
    "compute": DEVICE, "copy": DEVICE, "collective": NEITHER, "device_gap": NEITHER, "host_collective": NEITHER, "unrecorded": NEITHER,
}  # fmt: skip


@dataclass(frozen=True)
class Speeds:
    """By run, a factor for each of its cells and for host and device; 1 is the usual. Empty where it is not known.

    `scatter`: what times of names differ by from recording to recording, beside the speed; see `diff_scatter`.
    """

    a: dict[str, list[float]]
    b: dict[str, list[float]]
    found: list[Speed]
    scatter: dict[str, Scatter]

    def knows(self, what: str) -> bool:
        """Whether the speed of host or device could be told."""
        return what in self.a


def clock_of(part: str) -> str:
    """Whose speed a part's time goes by: the device's, the host's or neither's."""
    return _OF_PARTS.get(part, HOST)


def speeds(a: Samples, b: Samples, *, same_work: bool = True) -> Speeds:
    """Of the host by its ops, of the device by its kernels; by ops of the same shapes where the batch is another."""
    has_device = bool(a.kernels["ns"].sum() and b.kernels["ns"].sum())
    op_key = ["name"] if has_device else ["name", "shapes"]
    found = Speeds({}, {}, [], {})
    calls = [_calls(side.ops, op_key, "name", "host_ns") for side in (a, b)]
    _add(found, HOST, calls, (a, b), [] if has_device else [_waits(side) for side in (a, b)])
    if has_device and same_work and _has_same_grids(a, b):
        calls = _calls_of_kernels(a, b)
        if _are_most(calls):
            _add(found, DEVICE, calls, (a, b), [])
    elif has_device and _main_precision(a) == _main_precision(b):
        same = [side.ops.filter(pl.col("shapes").is_not_null(), pl.col("device_ns") > 0) for side in (a, b)]
        _add(
            found, DEVICE, [_calls(ops, ["name", "shapes"], "name", "device_ns") for ops in same], (a, b), []
        )
    return found


def _has_same_grids(a: Samples, b: Samples) -> bool:
    """Whether kernels that both have were mostly launched alike: else they do other work, also where no shapes tell so."""
    key = ["name", "op"]
    sides = [side.kernels.group_by(*key, "launch").agg(pl.col("ns").sum()) for side in (a, b)]
    for ours, theirs in (sides, sides[::-1]):
        common = ours.join(theirs, on=key, how="semi", nulls_equal=True)
        alike = common.join(theirs, on=[*key, "launch"], how="semi", nulls_equal=True)
        if int(alike["ns"].sum()) < SAME_GRIDS * int(common["ns"].sum()):
            return False
    return True


def _main_precision(side: Samples) -> str | None:
    """What most of the time of matrix products is in: ops of the same shapes move other bytes in another number format."""
    by_format = side.products.group_by("precision", maintain_order=True).agg(pl.col("ns").sum())
    found: list[str | None] = by_format.sort("ns", descending=True, maintain_order=True)[
        "precision"
    ].to_list()
    return found[0] if found else None


def _calls_of_kernels(a: Samples, b: Samples) -> list[pl.DataFrame]:
    key = ["name", "op", "launch"]
    tells_apart = min(side.kernels["op"].n_unique() for side in (a, b)) >= FEWEST_KINDS
    return [_calls(side.kernels, key, "op" if tells_apart else "name", "ns") for side in (a, b)]


def _are_most(calls: list[pl.DataFrame]) -> bool:
    """Whether the calls that both have are most of what either did."""
    for ours, theirs in (calls, calls[::-1]):
        common = ours.join(theirs, on="key", how="semi")
        if int(common["ns"].sum()) < SAME_KERNELS * int(ours["ns"].sum()):
            return False
    return True


def _add(
    found: Speeds,
    what: str,
    all_calls: list[pl.DataFrame],
    sides: tuple[Samples, Samples],
    more: list[pl.DataFrame],
) -> None:
    """`more`: names that tell of scatter, though not of speed."""
    both = all_calls[0].select("key").unique().join(all_calls[1].select("key").unique(), on="key")
    calls = [each.join(both, on="key", how="semi") for each in all_calls]
    usual = _usual(calls, sides)
    if (
        len(usual) < FEWEST_KINDS
        and calls[0].join(usual, on="key", how="semi")["name"].n_unique() < FEWEST_NAMES
    ):
        return
    factors = [_by_cell(each, usual, side.cells) for each, side in zip(calls, sides, strict=True)]
    found.a[what], found.b[what] = factors
    means = [sum(values) / len(values) for values in factors]
    found.found.append(Speed(what=what, ratio=round(means[1] / means[0], 4), kinds=len(usual)))
    told = [each.join(usual, on="key", how="semi") for each in calls]
    if more:
        told = [pl.concat([ops, names], how="diagonal") for ops, names in zip(told, more, strict=True)]
    spread = scatter(told, sides, factors)
    if spread is not None:
        # What a neighbour takes from a host that computes it takes from all names at once: nothing averages out.
        found.scatter[what] = Scatter(spread.of_one, spread.of_one) if more else spread


def _waits(side: Samples) -> pl.DataFrame:
    """What the account names, in the form of calls: where the host computes, it makes these as well."""
    step = float(side.cells["ns"].sum())
    long = side.names.group_by("part", "name").agg(pl.col("ns").sum()).filter(pl.col("ns") >= SLIVER * step)
    kept = side.names.join(long, on=["part", "name"], how="semi", nulls_equal=True)
    return kept.select(
        *CELL, "ns", calls=pl.lit(1, dtype=pl.Int64), name=pl.concat_str("part", "name", separator=": ")
    )


def _usual(calls: list[pl.DataFrame], sides: tuple[Samples, Samples]) -> pl.DataFrame:
    """key, usual: the time per call of the kinds that tell the speed."""
    step = max(float(side.cells["ns"].mean() or 0) for side in sides)  # type: ignore[arg-type]
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
        .filter(pl.col("usual") >= SHORTEST_NS)
    )
    long = usual.filter(pl.col("share") >= SLIVER)
    return long if len(long) >= FEWEST_KINDS else usual


def _calls(rows: pl.DataFrame, key: list[str], name: str, time: str) -> pl.DataFrame:
    """recording, rank, step, key, name, ns, calls, per_call."""
    summed = (
        rows.group_by(*CELL, *key, maintain_order=True)
        .agg(pl.col(time, "calls").sum())
        .filter(pl.col("calls") > 0)
    )
    return summed.select(
        *CELL,
        "calls",
        key=pl.struct(key).hash(),
        name=pl.coalesce(pl.col(name), pl.col("name")),
        ns=pl.col(time),
        per_call=pl.col(time) / pl.col("calls"),
    )


def _by_cell(calls: pl.DataFrame, usual: pl.DataFrame, cells: pl.DataFrame) -> list[float]:
    usually = (pl.col("usual") * pl.col("calls")).sum()
    by_name = calls.join(usual, on="key").group_by(*CELL, "name").agg(factor=pl.col("ns").sum() / usually)
    by_cell = by_name.group_by(*CELL).agg(pl.col("factor").median())
    found: list[float] = (
        cells.join(by_cell, on=list(CELL), how="left", maintain_order="left")["factor"]
        .fill_null(1.0)
        .to_list()
    )
    return [max(value, 0.01) for value in found]
