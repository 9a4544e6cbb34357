"""Inference computes a large product for all positions of a sequence, and reads only some of them, such as the last."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.useless_work import ROWS_LEFT_MOST, UNUSED_ROWS_LEAST

_PRODUCTS = ("aten::mm", "aten::addmm")
_AROUND = (*_PRODUCTS, "aten::linear", "aten::matmul")
_VIEWS = ("aten::select", "aten::slice")
_MATRIX = 2
_POSITIONS = 3  # dimensions of samples, positions and classes


def find(case: Case) -> Finding | None:
    """Products of which no kernel reads the result as a whole, but a view takes a part."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch" or case.device is None:
        return None
    ops = case.ops.filter(pl.col("shapes").is_not_null(), pl.col("step").is_not_null()).select(
        "event", "device_total_ns", pl.col("name", "shapes").cast(pl.String)
    )
    products = ops.filter(pl.col("name").is_in(_PRODUCTS))
    taken, read = (
        _taken(ops),
        _read(ops.filter(pl.col("device_total_ns") > 0, ~pl.col("name").is_in(_AROUND))),
    )
    sizes = {text: _made(text) for text in products["shapes"].unique()}
    unused = {text: made for text, made in sizes.items() if made in taken and not _is_read(made, read)}
    if not unused:
        return None
    mine = products.filter(pl.col("shapes").is_in(list(unused)))["event"]
    kernels = case.trace.kernels.filter(pl.col("op").is_in(mine.implode()))["event"]
    positions = max(taken[made] for made in unused.values())
    chosen = kernels.to_frame("event").with_columns(
        least=pl.lit(1 / positions), most=pl.lit(max(1 / positions, ROWS_LEFT_MOST))
    )
    why = f"computes a product for all of {positions:,} positions, of which no kernel reads more than a part."
    return of_kernels(case, RULE, chosen, why, evidence={"positions": positions})


def _shapes(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []


def _taken(ops: pl.DataFrame) -> dict[tuple[int, int], int]:
    """The tensors that a view takes a part of: their elements and classes, and how many positions they have."""
    found = {}
    for text in ops.filter(pl.col("name").is_in(_VIEWS))["shapes"].unique():
        shape = next(iter(_shapes(text)), [])
        if len(shape) == _POSITIONS and shape[1] >= UNUSED_ROWS_LEAST:
            found[math.prod(shape), shape[-1]] = shape[1]
    return found


def _made(text: str) -> tuple[int, int]:
    """Elements and columns of a product of two matrices; what is added to it may come before them."""
    matrices = [shape for shape in _shapes(text) if len(shape) == _MATRIX]
    return (matrices[-2][0] * matrices[-1][1], matrices[-1][1]) if len(matrices) > 1 else (0, 0)


def _read(ops: pl.DataFrame) -> set[tuple[int, int]]:
    """Elements and columns of the tensors that these ops read."""
    return {
        (math.prod(shape), shape[-1])
        for text in ops["shapes"].unique()
        for shape in _shapes(text)
        if len(shape) >= _MATRIX
    }


def _is_read(made: tuple[int, int], read: set[tuple[int, int]]) -> bool:
    """Whether something reads most of it, such as all positions but the last."""
    return any(columns == made[1] and elements > MAJORITY * made[0] for elements, columns in read)


RULE: Rule[Case] = Rule(
    code="unused-rows",
    title="A product computes rows that nothing reads",
    turn=183,
    page="ops",
    owns="products of inference whose result no kernel reads as a whole, while a view takes a part of its positions",
    change="their time shrinks to the share of one position, at most to a tenth",
    fix={
        "pytorch": "Choose the positions before the product: head(hidden[:, -1]) instead of head(hidden)[:, -1].",
        ANY: "Choose the positions before the product.",
    },
    find=find,
)
