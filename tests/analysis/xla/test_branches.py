"""Work of loops that a condition may throw away."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.branches import selected_work
from stepscope.analysis.xla.hlo_module import TUPLE, Module
from tests.analysis.xla.test_instruction_cost import F32, made, reads, shaped
from tests.analysis.xla.test_loops import computation
from tests.builders.protobuf import field

PRED, S32 = 1, 4
SAMPLES, SIZE = 4, 16
STATE = shaped(F32, SAMPLES, SIZE)
MASK = shaped(PRED, SAMPLES, SIZE)


def carried() -> bytes:
    parts = (field(2, F32) + field(3, bytes([SAMPLES, SIZE])), field(2, S32) + field(3, bytes([SAMPLES])))
    return field(3, field(2, TUPLE) + b"".join(field(4, part) for part in parts))


def program(
    condition: bytes = made("wide", "broadcast", 20, MASK, reads(12)), old: int = 10, turn: int = 11
) -> frozenset[str]:
    """What is selected in a loop that sorts its state, and selects what comes of it or the state before."""
    body = computation(
        5,
        made("state", "parameter", 1, carried()),
        made("before", "get-tuple-element", 10, STATE, reads(1), field(13, 0)),
        made("turn", "get-tuple-element", 11, shaped(S32, SAMPLES), reads(1), field(13, 1)),
        made("due", "compare", 12, shaped(PRED, SAMPLES), reads(11, 11)),
        made("distances", "negate", 13, STATE, reads(10)),
        made("sort.1", "sort", 14, STATE, reads(13)),
        made("each", "compare", 15, MASK, reads(10, 10)),
        made("scaled", "negate", 16, STATE, reads(10)),
        made("count", "reduce", 17, shaped(S32, SAMPLES), reads(14 if turn == 17 else 16)),
        condition,
        made("select", "select", 22, STATE, reads(20, old, 14)),
        made("result", "tuple", 30, carried(), reads(22, turn)),
    )
    test = computation(6, made("state", "parameter", 1, carried()), made("go", "constant", 2, shaped(PRED)))
    entry = computation(
        1,
        made("given", "parameter", 1, carried()),
        made("loop", "while", 2, carried(), reads(1), field(38, bytes([5, 6]))),
    )
    return selected_work(Module(field(1, body + test + entry + field(6, 1))))


def test_a_branch_for_each_sample_is_always_computed() -> None:
    assert program() == {"sort_1", "distances"}


@pytest.mark.parametrize(
    "other",
    [
        {"condition": made("wide", "bitcast", 20, MASK, reads(15))},  # a mask of elements
        {"old": 16},  # neither value is the state before
    ],
)
def test_another_selection_is_no_branch(other: dict[str, bytes | int]) -> None:
    assert program(**other) == frozenset()  # type: ignore[arg-type]


def test_what_is_used_elsewhere_is_not_computed_for_the_branch_alone() -> None:
    assert program(turn=17) == frozenset()
