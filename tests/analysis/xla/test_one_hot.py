"""One-hot matrices in the code of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.one_hot import OneHot, one_hot_work
from tests.analysis.xla.test_instruction_cost import F32, made, reads
from tests.analysis.xla.test_loops import computation
from tests.builders.protobuf import field, varint

S32, PRED = 4, 1
ROWS, CLASSES, WIDTH = 64, 1024, 16


def shaped(element: int, *sizes: int) -> bytes:
    return field(3, field(2, element) + field(3, b"".join(varint(size) for size in sizes)))


def program(direction: str = "EQ", classes: int = CLASSES, compared: int = 3, used: int = 13) -> OneHot:
    """Of a program that fuses the comparison, splits the product in four, and converts inside the product's kernel."""
    making = computation(
        7,
        made("ids", "parameter", 1, shaped(S32, ROWS)),
        made("positions", "iota", 2, shaped(S32, ROWS, classes)),
        made("wide", "broadcast", 3, shaped(S32, ROWS, classes), reads(1)),
        made("eq", "compare", 4, shaped(PRED, ROWS, classes), reads(2, compared), field(63, direction)),
    )
    multiplying = computation(
        8,
        made("p0", "parameter", 1, shaped(PRED, ROWS, 4, classes // 4)),
        made("p1", "parameter", 2, shaped(F32, 4, classes // 4, WIDTH), field(9, 1)),
        made("convert", "convert", 3, shaped(F32, ROWS, 4, classes // 4), reads(1)),
        made("dot", "dot", 4, shaped(F32, 4, ROWS, WIDTH), reads(3, 2)),
        made("scaled", "negate", 5, shaped(F32, 4, ROWS, WIDTH), reads(4)),
    )
    entry = computation(
        1,
        made("ids", "parameter", 10, shaped(S32, ROWS)),
        made("table", "parameter", 11, shaped(F32, 4, classes // 4, WIDTH), field(9, 1)),
        made("one_hot", "fusion", 12, shaped(PRED, ROWS, classes), reads(10), field(38, bytes([7]))),
        made("split", "bitcast", 13, shaped(PRED, ROWS, 4, classes // 4), reads(12)),
        made("data", "parameter", 14, shaped(PRED, ROWS, 4, classes // 4), field(9, 2)),
        made("product", "fusion", 15, shaped(F32, 4, ROWS, WIDTH), reads(used, 11), field(38, bytes([8]))),
    )
    return one_hot_work(Module(field(1, making + multiplying + entry + field(6, 1))))


def test_a_product_gets_what_a_fused_comparison_made() -> None:
    found = program()
    assert found.making == {f"[[{ROWS}]]"}
    assert found.products == {f"[[{ROWS},4,{CLASSES // 4}],[4,{CLASSES // 4},{WIDTH}]]": (ROWS, CLASSES)}


@pytest.mark.parametrize(
    "other",
    [
        {"direction": "LT"},  # a mask by lengths
        {"compared": 2},  # positions with positions: a diagonal
        {"classes": 128},
        {"used": 14},  # the product gets something else
    ],
)
def test_what_is_no_one_hot_product(other: dict[str, int | str]) -> None:
    assert program(**other) == OneHot()  # type: ignore[arg-type]


def padded(by: int) -> OneHot:
    """Of a program that widens the matrix before the product, as libraries want it: by a constant (5), or by something else (1)."""
    wide = CLASSES + 32
    entry = computation(
        1,
        made("ids", "parameter", 1, shaped(S32, ROWS)),
        made("positions", "iota", 2, shaped(S32, ROWS, CLASSES)),
        made("many", "broadcast", 3, shaped(S32, ROWS, CLASSES), reads(1)),
        made("eq", "compare", 4, shaped(PRED, ROWS, CLASSES), reads(2, 3), field(63, "EQ")),
        made("zero", "constant", 5, shaped(PRED)),
        made("pad", "pad", 6, shaped(PRED, ROWS, wide), reads(4, by)),
        made("table", "parameter", 7, shaped(F32, wide, WIDTH), field(9, 1)),
        made("dot", "dot", 8, shaped(F32, ROWS, WIDTH), reads(6, 7)),
    )
    return one_hot_work(Module(field(1, entry + field(6, 1))))


def test_a_padded_matrix_is_one_hot_still() -> None:
    found = padded(by=5)
    ((rows, classes),) = found.products.values()
    assert classes == CLASSES
    assert ROWS <= rows <= 1.05 * ROWS
    assert f"[[{ROWS},{CLASSES}],[]]" in found.making
    assert padded(by=1) == OneHot()
