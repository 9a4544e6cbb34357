"""Products with the same weights that get one more row per sequence from call to call, as those of a text that is fed again for each new token."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import GROWING_CALLS_LEAST, GROWING_PREFIXES, PREFIX_LEAST
from stepscope.trace.frames import take_mean

_LINEAR = ("aten::linear", "aten::mm", "aten::addmm")


def linear_calls(case: Case) -> pl.DataFrame:
    """event, start_ns, weight, rows, weight_numbers of the products with a weight, in the order in which they are called."""
    ops = case.ops.filter(pl.col("name").cast(pl.String).is_in(_LINEAR), pl.col("step").is_not_null())
    calls = ops.select("event", name=pl.col("name").cast(pl.String), shapes=pl.col("shapes").cast(pl.String))
    distinct = calls.select("name", "shapes").drop_nulls().unique(maintain_order=True)
    sides = [_sides(*each) for each in distinct.iter_rows()]
    table = distinct.with_columns(
        weight=pl.Series(
            [
                f"{name} {found[1:]}" if found else None
                for name, found in zip(distinct["name"], sides, strict=True)
            ],
            dtype=pl.String,
        ),
        rows=pl.Series([found[0] if found else None for found in sides], dtype=pl.Int64),
        weight_numbers=pl.Series([found[1] * found[2] if found else None for found in sides], dtype=pl.Int64),
    )
    found = calls.join(table, on=["name", "shapes"]).drop_nulls("rows")
    return found.with_columns(start_ns=case.trace.events["start_ns"].gather(found["event"])).sort("start_ns")


def _sides(name: str, text: str) -> tuple[int, int, int] | None:
    """Rows of the input, and the sides of the weight."""
    try:
        shapes = msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return None
    given = shapes[1:] if name == "aten::addmm" else shapes
    if len(given) < 2 or len(given[0]) < 2 or len(given[1]) != 2 or min(given[0] + given[1]) <= 0:
        return None
    return math.prod(given[0][:-1]), given[1][0], given[1][1]


def tokens_in(calls: pl.DataFrame) -> float | None:
    """How many tokens a sequence has, if it begins with a prompt and grows by one from call to call; None if it does not."""
    growing = growing_weights(calls).filter(
        pl.col("first") % pl.col("grown") == 0, pl.col("first") >= PREFIX_LEAST * pl.col("grown")
    )
    if growing.is_empty() or not _are_most(calls, growing):
        return None
    return take_mean(growing["rows"] / growing["grown"])


def growing_weights(calls: pl.DataFrame) -> pl.DataFrame:
    """weight, rows (of its calls in the mean), first, grown of the weights whose products grow."""
    lengths = calls.group_by("weight", maintain_order=True).agg(
        times=pl.col("rows").n_unique(), rows=pl.col("rows").unique().mean(), first=pl.col("rows").first()
    )
    return lengths.join(_growth(calls), on="weight", maintain_order="left").filter(
        pl.col("times") >= GROWING_PREFIXES
    )


def _are_most(calls: pl.DataFrame, growing: pl.DataFrame) -> bool:
    """Whether most of the products are with one of these weights."""
    mine = calls["weight"].is_in(growing["weight"].implode())
    return int(mine.sum()) > MAJORITY * len(calls)


def _growth(calls: pl.DataFrame) -> pl.DataFrame:
    """weight, grown: by how many rows its products grow in nearly all calls that differ from the one before.

    The others begin the next request, whose prompt has a length of its own.
    """
    grown = calls.select("weight", grown=pl.col("rows").diff().over("weight")).filter(pl.col("grown") != 0)
    usual = grown.group_by("weight", "grown").len().with_columns(of=pl.col("len").sum().over("weight"))
    return usual.filter(pl.col("grown") > 0, pl.col("len") >= GROWING_CALLS_LEAST * pl.col("of")).select(
        "weight", "grown"
    )
