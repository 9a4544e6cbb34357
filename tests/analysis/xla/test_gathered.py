"""Products that compiled programs apply to gathered rows."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.gathered import gathered_rows
from stepscope.analysis.xla.hlo_module import Module
from tests.analysis.xla.test_instruction_cost import F32, made, reads, shaped
from tests.analysis.xla.test_loops import computation
from tests.builders.protobuf import field

S32 = 4
ROWS, WIDTH = 120, 16
RESULT = shaped(F32, ROWS, WIDTH)


def inputs_in(*more: bytes, table: int = 30) -> set[tuple[int, int]]:
    """What products are given of a gather in a program with these instructions."""
    entry = computation(
        1,
        made("table", "parameter", 1, shaped(F32, table, WIDTH)),
        made("index", "parameter", 2, shaped(S32, ROWS), field(9, 1)),
        made("weights", "parameter", 3, shaped(F32, WIDTH, WIDTH), field(9, 2)),
        made("bias", "parameter", 4, shaped(F32, WIDTH), field(9, 3)),
        made("others", "parameter", 5, RESULT, field(9, 4)),
        made("positions", "parameter", 6, shaped(F32, 6, WIDTH), field(9, 5)),
        made("gather", "gather", 10, RESULT, reads(1, 2)),
        *more,
    )
    found = gathered_rows(Module(field(1, entry + field(6, 1))))
    return {each for one in found for each in one.inputs}


def product(of: int = 10) -> bytes:
    return made("dot", "dot", 20, RESULT, reads(of, 3))


def test_a_product_of_gathered_rows() -> None:
    assert inputs_in(product()) == {(ROWS, WIDTH)}


def test_with_elementwise_ops_between() -> None:
    assert inputs_in(made("bias_add", "add", 11, RESULT, reads(10, 4)), product(11)) == {(ROWS, WIDTH)}


@pytest.mark.parametrize("other", [5, 6])
def test_other_rows_make_equal_ones_differ(other: int) -> None:
    assert inputs_in(made("sum", "add", 11, RESULT, reads(10, other)), product(11)) == set()


def test_a_table_with_as_many_rows_is_not_repeated() -> None:
    assert inputs_in(product(), table=80) == set()


def test_a_product_of_something_else() -> None:
    assert inputs_in(product(5)) == set()


def joined(second: int = 5, opcode: str = "concatenate") -> bytes:
    """A fused kernel that gathers rows of its first input and combines them with what it broadcasts."""
    fused = computation(
        7,
        made("p0", "parameter", 1, shaped(F32, 30, WIDTH)),
        made("p1", "parameter", 2, shaped(S32, 30, 4), field(9, 1)),
        made("p2", "parameter", 3, shaped(F32, 6, WIDTH), field(9, 2)),
        made("gather", "gather", 4, shaped(F32, 30, 4, WIDTH), reads(1, 2)),
        made("own", "broadcast", 5, shaped(F32, 30, 4, WIDTH), reads(1)),
        made("difference", "subtract", 7, shaped(F32, 30, 4, WIDTH), reads(4, second)),
        made("both", opcode, 8, shaped(F32, 30, 4, 2 * WIDTH), reads(7, 5)),
    )
    entry = computation(
        1,
        made("table", "parameter", 1, shaped(F32, 30, WIDTH)),
        made("index", "parameter", 2, shaped(S32, 30, 4), field(9, 1)),
        made("positions", "parameter", 3, shaped(F32, 6, WIDTH), field(9, 2)),
        made("weights", "parameter", 4, shaped(F32, 2 * WIDTH, WIDTH), field(9, 3)),
        made("more", "parameter", 5, shaped(F32, WIDTH, WIDTH), field(9, 4)),
        made("joined", "fusion", 10, shaped(F32, 30, 4, 2 * WIDTH), reads(1, 2, 3), field(38, bytes([7]))),
        made("flat", "bitcast", 11, shaped(F32, ROWS, 2 * WIDTH), reads(10)),
        made("dot", "dot", 12, RESULT, reads(11, 4)),
        made("second", "dot", 13, RESULT, reads(12, 5)),
    )
    return field(1, fused + entry + field(6, 1))


def test_a_product_is_linear_in_the_joined_rows_of_both_ends_of_an_edge() -> None:
    """The first product alone: what comes after it depends on both ends."""
    (found,) = gathered_rows(Module(joined()))
    assert (found.rows, found.table, found.inputs) == (ROWS, 30, {(ROWS, 2 * WIDTH)})
    assert found.by == f"[[30,{WIDTH}],[30,4],[6,{WIDTH}]]"


def test_joined_with_rows_of_another_table() -> None:
    assert gathered_rows(Module(joined(second=3))) == []


def test_joined_by_what_is_not_linear() -> None:
    assert gathered_rows(Module(joined(opcode="multiply"))) == []
