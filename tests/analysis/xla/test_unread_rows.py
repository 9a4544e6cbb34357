"""Products in the code of compiled programs of which a few rows are read."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.unread_rows import Unread, unread_rows
from tests.analysis.xla.test_instruction_cost import F32, made, reads
from tests.analysis.xla.test_loops import computation
from tests.analysis.xla.test_one_hot import S32, shaped
from tests.builders.protobuf import field

BF16 = 16
SAMPLES, POSITIONS, WIDTH, CLASSES = 4, 32, 16, 1024
ROWS = SAMPLES * POSITIONS
LOGITS = shaped(F32, SAMPLES, POSITIONS, CLASSES)
PRODUCT = ("dot", "dot", f"[[{ROWS},{WIDTH}],[{WIDTH},{CLASSES}]]")
PASS = ("wide", "wide", f"[[{ROWS},{CLASSES}]]")


def head(*after: bytes) -> bytes:
    """Hidden states times a matrix, converted in a kernel of its own, and seen as samples and positions."""
    return computation(7, made("p", "parameter", 1, shaped(BF16, ROWS, CLASSES)), made("c", "convert", 2, shaped(F32, ROWS, CLASSES), reads(1))) + computation(
        1,
        made("hidden", "parameter", 10, shaped(BF16, ROWS, WIDTH)),
        made("weights", "parameter", 11, shaped(BF16, WIDTH, CLASSES), field(9, 1)),
        made("dot", "dot", 12, shaped(BF16, ROWS, CLASSES), reads(10, 11)),
        made("wide", "fusion", 13, shaped(F32, ROWS, CLASSES), reads(12), field(38, bytes([7]))),
        made("logits", "bitcast", 14, LOGITS, reads(13)),
        *after,
    )  # fmt: skip


def program(body: bytes) -> Module:
    return Module(field(1, body + field(6, 1)))


def picking(*after: bytes, kept: int = 1) -> Module:
    """A fused kernel that gathers one position of each sample from what another program returned, and reduces it."""
    inside = computation(
        8,
        made("p0", "parameter", 1, LOGITS),
        made("p1", "parameter", 2, shaped(S32, SAMPLES, 2), field(9, 1)),
        made("gather", "gather", 3, shaped(F32, SAMPLES, kept, CLASSES), reads(1, 2)),
        made("best", "reduce", 4, shaped(F32, SAMPLES), reads(3)),
    )
    entry = computation(
        1,
        made("logits", "parameter", 10, LOGITS),
        made("lengths", "parameter", 11, shaped(S32, SAMPLES, 2), field(9, 1)),
        made("pick", "fusion", 12, shaped(F32, SAMPLES), reads(10, 11), field(38, bytes([8]))),
        *after,
    )
    return program(inside + entry)


LAST = made("last", "slice", 15, shaped(F32, SAMPLES, 1, CLASSES), reads(14))


def test_a_slice_of_the_last_position() -> None:
    assert unread_rows([program(head(LAST))]) == [Unread(POSITIONS, PRODUCT, frozenset({PASS}))]


def test_another_program_takes_what_the_first_returns() -> None:
    assert unread_rows([program(head()), picking()]) == [Unread(POSITIONS, PRODUCT, frozenset({PASS}))]


def test_what_the_host_or_nobody_takes_may_be_read_as_a_whole() -> None:
    assert unread_rows([program(head())]) == []
    assert unread_rows([program(head()), picking()], fetched=4 * ROWS * CLASSES) == []
    assert len(unread_rows([program(head()), picking()], fetched=4 * SAMPLES * CLASSES)) == 1


@pytest.mark.parametrize(
    "after",
    [
        [made("best", "reduce", 16, shaped(F32, SAMPLES, POSITIONS), reads(14))],
        [made("half", "slice", 15, shaped(F32, SAMPLES, POSITIONS // 2, CLASSES), reads(14))],
        [made("targets", "gather", 15, shaped(F32, SAMPLES, POSITIONS), reads(14, 10))],
        [LAST, made("again", "dot", 16, shaped(F32, SAMPLES, POSITIONS, WIDTH), reads(14, 11))],
    ],
)
def test_what_reads_more_than_a_few_rows(after: list[bytes]) -> None:
    assert unread_rows([program(head(*after))]) == []


def test_a_later_program_that_reads_more() -> None:
    assert unread_rows([program(head()), picking(kept=POSITIONS // 4)]) == []
    total = made("sum", "reduce", 16, shaped(F32, SAMPLES), reads(10))
    assert unread_rows([program(head()), picking(total)]) == []


def test_a_product_of_the_chosen_rows_alone() -> None:
    entry = computation(
        1,
        made("hidden", "parameter", 10, shaped(BF16, SAMPLES, POSITIONS, WIDTH)),
        made("weights", "parameter", 11, shaped(BF16, WIDTH, CLASSES), field(9, 1)),
        made("last", "slice", 12, shaped(BF16, SAMPLES, WIDTH), reads(10)),
        made("dot", "dot", 13, shaped(BF16, SAMPLES, CLASSES), reads(12, 11)),
        made("best", "reduce", 14, shaped(BF16, SAMPLES), reads(13)),
    )
    assert unread_rows([program(entry)]) == []
