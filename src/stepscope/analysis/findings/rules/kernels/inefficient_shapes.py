"""Matrix products whose sides do not suit tensor cores."""

from __future__ import annotations

import json

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import (
    ALIGNED_PRODUCT_BEST,
    ALIGNED_PRODUCT_WORST,
    ALIGNED_SIDE,
    SLOW_PRODUCT_OF_PEAK,
)
from stepscope.registers.policy.findings import TOP_NAMES
from stepscope.trace.frames import take_mean
from stepscope.units import percent

_HALF = ("bf16", "fp16")


def find(case: Case) -> Finding | None:
    """16-bit products with a side that is not a multiple of 8, which run far below the peak."""
    if not case.peaks:
        return None
    rows = _slow_products(case)
    if rows.is_empty():
        return None
    sides = sorted({side for text in rows["shapes"].unique() for side in _odd_sides(text)}, reverse=True)
    why = (
        f"is spent in matrix products with sides that are not multiples of {ALIGNED_SIDE} "
        f"({', '.join(f'{side:,}' for side in sides[:TOP_NAMES])}), at {percent(take_mean(rows['of_peak']))} of the peak."
    )
    return of_kernels(
        case, RULE, rows.select("event", "least", "most"), why, evidence={"sides": sides[:TOP_NAMES]}
    )


def _slow_products(case: Case) -> pl.DataFrame:
    """event, shapes, of_peak, least, most of such products."""
    known = {name: case.peaks.flops_per_s(name) for name in _HALF} if case.peaks else {}
    products = case.compute.kernels.filter(
        pl.col("class") == "matmul",
        pl.col("precision").is_in(_HALF),
        pl.col("flops") > 0,
        pl.col("time_ns") > 0,
    )
    op = case.trace.kernels.select("event", "op")
    shapes = case.trace.ops.select(op="event", shapes="shapes")
    rows = (
        products.select("event", "precision", "flops", "time_ns").join(op, on="event").join(shapes, on="op")
    ).with_columns(pl.col("shapes").cast(pl.String))
    odd = [text for text in rows["shapes"].unique().drop_nulls() if _odd_sides(text)]
    peak = pl.col("precision").replace_strict(
        list(known), list(known.values()), default=None, return_dtype=pl.Float64
    )
    rows = rows.filter(pl.col("shapes").is_in(odd)).with_columns(
        of_peak=pl.col("flops") / peak * 1e9 / pl.col("time_ns")
    )
    slow = rows.filter(pl.col("of_peak") < SLOW_PRODUCT_OF_PEAK)
    return slow.with_columns(
        least=(pl.col("of_peak") / ALIGNED_PRODUCT_BEST).clip(upper_bound=1.0),
        most=(pl.col("of_peak") / ALIGNED_PRODUCT_WORST).clip(upper_bound=1.0),
    )


def _odd_sides(text: str) -> list[int]:
    """The sides of a product's matrices that are not multiples of 8."""
    try:
        shapes = [shape for shape in json.loads(text) if isinstance(shape, list) and len(shape) >= 2]
    except (ValueError, TypeError):
        return []
    sides = [side for shape in shapes for side in shape[-2:] if isinstance(side, int)]
    return [side for side in sides if side > ALIGNED_SIDE and side % ALIGNED_SIDE]


RULE: Rule[Case] = Rule(
    code="inefficient-shapes",
    title="Matrix products have sides that tensor cores handle badly",
    turn=192,
    page="kernels",
    owns="16-bit products with a dimension that is not a multiple of 8 and less than 40 % of the peak",
    change="they run at 45 to 70 % of the peak",
    fix={
        ANY: "Pad these sides to a multiple of 64 (a vocabulary of 50,257 to 50,304): the extra columns cost less than they save.",
    },
    find=find,
    needs_device=True,
)
