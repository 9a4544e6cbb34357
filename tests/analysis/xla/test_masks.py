"""Masks of samples in compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.masks import padded_length
from tests.analysis.xla.test_instruction_cost import F32, made, reads, shaped
from tests.analysis.xla.test_loops import computation
from tests.builders.protobuf import field

PRED, S32, U32, TUPLE = 1, 4, 8, 13
SCORES = shaped(F32, 2, 4, 64, 64)  # samples, heads, positions by positions
MASK = shaped(PRED, 2, 4, 64, 64)


def length_in(*entry: bytes, others: bytes = b"") -> int | None:
    """Of a program with these instructions."""
    return padded_length(Module(field(1, others + computation(1, *entry) + field(6, 1))))


LENGTHS = made("lengths", "parameter", 1, shaped(S32, 2))
TABLE = made("scores", "dot", 2, SCORES)
POSITIONS = made("positions", "iota", 3, shaped(S32, 2, 64))
SPREAD = made("spread", "broadcast", 4, shaped(S32, 2, 64), reads(1))
BELOW = made("below", "compare", 5, MASK, reads(3, 4))
LOW = made("low", "constant", 6, shaped(F32))


def selects(mask: int = 5, scores: int = 2, shape: bytes = SCORES) -> bytes:
    return made("select", "select", 9, shape, reads(mask, scores, 6))


def test_scores_beyond_the_length_of_each_sample() -> None:
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, BELOW, LOW, selects()) == 64


def test_a_causal_mask_is_of_all_samples() -> None:
    causal = made("below", "compare", 5, MASK, reads(3, 3))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, causal, LOW, selects()) is None


def test_samples_that_share_a_sequence_are_no_padding() -> None:
    same = made("same", "compare", 5, MASK, reads(4, 4))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, same, LOW, selects()) is None


@pytest.mark.parametrize(
    ("sides", "kind", "length"),
    [
        ((64, 64), PRED, None),  # causal
        ((2, 1, 64, 64), PRED, None),  # documents that share a sequence
        ((2, 64, 64), S32, None),  # edges of a graph
        ((64, 64), S32, 64),  # marks of as many samples as positions
        ((2, 1, 1, 64), PRED, 64),
    ],
)
def test_a_table_of_pairs_that_the_program_is_given(
    sides: tuple[int, ...], kind: int, length: int | None
) -> None:
    given = made("given", "parameter", 1, shaped(kind, *sides))
    spread = made("spread", "broadcast", 5, MASK, reads(1))
    assert length_in(given, TABLE, spread, LOW, selects()) == length


def test_a_mask_of_a_loss_is_no_mask_of_attention() -> None:
    flat = shaped(F32, 2, 64)
    losses = made("losses", "parameter", 2, flat, field(9, 1))
    assert length_in(LENGTHS, losses, POSITIONS, SPREAD, BELOW, LOW, selects(shape=flat)) is None


def test_what_is_looked_up_is_no_mask() -> None:
    looked = made("looked", "gather", 7, MASK, reads(2, 1))
    assert length_in(LENGTHS, TABLE, LOW, looked, selects(mask=7)) is None


def test_a_mask_that_is_added_in_a_fused_kernel() -> None:
    a, b = (made(n, "parameter", at, SCORES, field(9, at - 1)) for n, at in (("a", 1), ("b", 2)))
    adds = computation(20, a, b, made("sum", "add", 3, SCORES, reads(1, 2)))
    fused = made("fused", "fusion", 9, SCORES, reads(5, 2), field(38, 20))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, BELOW, fused, others=adds) == 64


def test_a_mask_that_a_loop_over_layers_is_given() -> None:
    parts = field(
        3,
        field(2, TUPLE)
        + b"".join(field(4, field(2, each) + field(3, bytes([2, 4, 64, 64]))) for each in (PRED, F32)),
    )
    turn = made("turn", "parameter", 1, parts)
    mask, scores = (
        made(name, "get-tuple-element", at, shape, reads(1), field(13, at - 2))
        for name, at, shape in (("m", 2, MASK), ("s", 3, SCORES))
    )
    body = computation(
        30,
        turn,
        mask,
        scores,
        LOW,
        made("select", "select", 9, SCORES, reads(2, 3, 6)),
        made("root", "tuple", 10, parts, reads(2, 9)),
    )
    start = made("start", "tuple", 7, parts, reads(5, 2))
    loop = made("while.1", "while", 8, parts, reads(7), field(38, 30))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, BELOW, LOW, start, loop, others=body) == 64


def test_a_square_picture_is_no_table_of_scores() -> None:
    picture = made("picture", "parameter", 2, SCORES, field(9, 1))
    assert length_in(LENGTHS, picture, POSITIONS, SPREAD, BELOW, LOW, selects()) is None


def test_dropout_is_no_mask_of_samples() -> None:
    key = made("key", "parameter", 1, shaped(U32, 2))
    rotated = made("rotated", "shift-left", 3, shaped(U32, 2, 64), reads(1, 6))
    keep = made("keep", "compare", 5, MASK, reads(3, 6))
    assert length_in(key, TABLE, LOW, rotated, keep, selects()) is None
    halved = made("halved", "shift-right-logical", 3, shaped(U32, 2, 64), reads(1, 6))
    assert length_in(key, TABLE, LOW, halved, keep, selects()) == 64


def test_random_numbers_that_a_loop_makes_are_no_mask() -> None:
    parts = field(3, field(2, TUPLE) + field(4, field(2, U32) + field(3, bytes([2, 64]))))
    turn = made("turn", "parameter", 1, parts)
    key = made("key", "get-tuple-element", 2, shaped(U32, 2, 64), reads(1))
    rotated = made("rotated", "shift-left", 3, shaped(U32, 2, 64), reads(2, 2))
    body = computation(30, turn, key, rotated, made("root", "tuple", 10, parts, reads(3)))
    start = made("start", "tuple", 7, parts, reads(1))
    loop = made("while.1", "while", 8, parts, reads(7), field(38, 30))
    bits = made("bits", "get-tuple-element", 3, shaped(U32, 2, 64), reads(8))
    keep = made("keep", "compare", 5, MASK, reads(3, 6))
    assert length_in(LENGTHS, TABLE, LOW, start, loop, bits, keep, selects(), others=body) is None


def test_indices_of_a_table_are_no_scores() -> None:
    whole = shaped(S32, 2, 4, 64, 64)
    added = made("select", "select", 9, whole, reads(5, 2, 6))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, BELOW, LOW, added) is None


def test_fused_attention_says_so_itself() -> None:
    queries = made("queries", "parameter", 2, shaped(F32, 2, 64, 4, 16), field(9, 1))
    call = [
        made(
            "fmha", "custom-call", 8, SCORES, reads(2, 1), field(28, "__cudnn$fmhaSoftmax"), field(43, config)
        )
        for config in ('{"mask_type": "PADDING"}', '{"mask_type": "CAUSAL"}')
    ]
    assert [length_in(LENGTHS, queries, each) for each in call] == [64, None]


def test_a_program_that_calls_itself_ends() -> None:
    again = made("again", "fusion", 9, SCORES, reads(5, 2), field(38, 1))
    assert length_in(LENGTHS, TABLE, POSITIONS, SPREAD, BELOW, again) is None
