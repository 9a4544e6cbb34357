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
