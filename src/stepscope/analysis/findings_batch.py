"""The finding that each step does too little: products in which the batch is much smaller than the weights.

Such a product takes as long as it takes to read the weights, or to launch it; more samples in the same step cost next to
nothing. The speed-up is told per sample, for eight times the batch.
"""

from __future__ import annotations

import json

import polars as pl

from stepscope.analysis.finding import Case, Finding, saving

_TIMES = 8
_SMALL_BATCH = 32
_WEIGHTS_OVER_BATCH = 16
_LEAST_SHARE = 0.3  # of the device's work in such products
_REACHED = 0.5  # of the peak, by large products


def small_batch(case: Case) -> Finding | None:
    """Most of the device's work is in products whose smallest side, the batch, is far below the others."""
    products = _products(case)
    if products.is_empty() or not case.peaks:
        return None
    small = products.filter(pl.col("small"))
    busy = int(case.kernels["dur_ns"].sum())
    idle = case.free(pl.col("part").is_in(["dispatch", "device_gap"]))
    mine = case.trace.kernels.filter(pl.col("op").is_in(small["event"].implode()))["event"]
    compute = case.free(pl.col("part") == "compute")
    of_products = compute.filter(pl.col("named_by").is_in(mine.implode()))
    if not busy or int(of_products["ns"].sum()) < _LEAST_SHARE * busy:
        return None
    if len(small) < 0.8 * len(products):
        return None
    grown = _grown_ns(case, small) / case.step_count
    length = case.unprofiled_ns
    per_sample = (length + grown) / _TIMES
    owned = pl.concat([idle, compute])
    owned_ns = case.per_step(owned)
    case.claim(owned)
    size = int(small["batch"].median() or 0)  # type: ignore[arg-type]
    detail = (
        f"{case.of_step(owned_ns)} goes into products of {size} rows with weights many times as large: they take as long"
        f" as reading the weights or launching takes. The speed-up is per sample, with {_TIMES} times the batch."
    )
    evidence = {
        "rows": size,
        "times": _TIMES,
        "products_per_step": round(len(small) / max(1, len(case.lengths))),
    }
    saved = length - per_sample
    raw = saved * case.step_ns / length
    return saving(
        case, "small-batch", owned_ns, saved, raw, "The batch is too small for the device", detail, evidence
    )


def _products(case: Case) -> pl.DataFrame:
    """event, flops, batch and whether that is small, of the ops that multiply matrices on the device."""
    name = pl.col("name").cast(pl.String)
    ops = case.ops.filter(
        name.str.contains(r"^aten::(addmm|mm|_scaled_mm)$|^dot_general$"),
        pl.col("shapes").is_not_null(),
        pl.col("device_total_ns") > 0,
    ).select("event", "flops", "device_total_ns", shapes=pl.col("shapes").cast(pl.String))
    sides = {text: _sides(text) for text in ops["shapes"].unique()}
    known = pl.DataFrame(
        {
            "shapes": list(sides),
            "batch": [side[0] if side else None for side in sides.values()],
            "others": [side[1] if side else None for side in sides.values()],
        },
        schema={"shapes": pl.String, "batch": pl.Int64, "others": pl.Int64},
    )
    small = (pl.col("batch") <= _SMALL_BATCH) & (pl.col("others") >= _WEIGHTS_OVER_BATCH * pl.col("batch"))
    return ops.join(known, on="shapes", maintain_order="left").drop_nulls("batch").with_columns(small=small)


def _sides(text: str) -> tuple[int, int] | None:
    """The smallest of a product's three sides, and the next one."""
    try:
        shapes = [shape for shape in json.loads(text) if isinstance(shape, list) and len(shape) == 2]
    except (ValueError, TypeError):
        return None
    if len(shapes) < 2 or not all(isinstance(n, int) and n > 0 for shape in shapes[-2:] for n in shape):
        return None
    (rows, inner), (_, columns) = shapes[-2:]
    least, middle, _ = sorted((rows, inner, columns))
    return least, middle


def _grown_ns(case: Case, small: pl.DataFrame) -> float:
    """How much longer the products take with more samples: nothing until their sums cost more than their reading."""
    peak = case.peaks.flops_per_s("bf16") or case.peaks.flops_per_s("fp32") if case.peaks else None
    if not peak:
        return 0.0
    ideal = small["flops"].fill_null(0) * _TIMES / (_REACHED * peak) * 1e9
    return float((ideal - small["device_total_ns"]).clip(lower_bound=0).sum())
