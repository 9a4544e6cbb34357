"""Whether both runs are one program: what its steps call, by name, and by shapes where these are the same in all steps.

How often something is called does not count, only its share of all calls: a job with twice the passes is the same program. Another
batch is as well: where shapes differ by one factor, they are not compared.
"""

from __future__ import annotations

import polars as pl

from stepscope.diffs.data.samples import CELL, Samples
from stepscope.registers.levels import FEWEST_SPEED_KINDS
from stepscope.registers.policy.diffs import SAME_CODE, STEADY_SHAPES

# fusion.12: compilers number what they make.
_NUMBER = r"\.\d+$"


def measure_overlap(a: Samples, b: Samples, *, same_batch: bool) -> float | None:
    """The share of calls that both have; None where too little is known to say."""
    names = [_share_calls(side.ops, ["name"]) for side in (a, b)]
    if min(map(len, names)) < FEWEST_SPEED_KINDS:
        return None
    by_name = _overlap(names[0], names[1], ["name"])
    if by_name < SAME_CODE or not same_batch:
        return by_name
    ours, theirs = _list_steady_shapes(a), _list_steady_shapes(b)
    if ours is None or theirs is None:
        return by_name
    key = ["name", "shapes"]
    return _overlap(_share_calls(ours, key), _share_calls(theirs, key), key)


def _share_calls(ops: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """By key, its share of all calls."""
    plain = ops.with_columns(pl.col("name").str.replace(_NUMBER, ""))
    sums = plain.group_by(key).agg(pl.col("calls").sum()).filter(pl.col("calls") > 0)
    return sums.with_columns(part=pl.col("calls") / pl.col("calls").sum())


def _overlap(a: pl.DataFrame, b: pl.DataFrame, key: list[str]) -> float:
    both = a.join(b, on=key, suffix="_b", nulls_equal=True)
    return float(both.select(pl.min_horizontal("part", "part_b").sum()).item())


def _list_steady_shapes(side: Samples) -> pl.DataFrame | None:
    """Ops with shapes that all steps have; None where that is the smaller part, as with inputs of all lengths."""
    known = side.ops.filter(pl.col("shapes").is_not_null())
    steady = known.filter(pl.struct(*CELL).n_unique().over("name", "shapes") >= len(side.cells))
    return steady if int(steady["calls"].sum()) >= STEADY_SHAPES * int(side.ops["calls"].sum()) > 0 else None
