"""All pairs of two sets of vectors by a broadcast and a sum, by the order of ops; names and inputs as PyTorch 2.11 records them."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.ops.broadcasts import Call, Pairs, pairs_of

N, K, D = 64, 48, 16
S = [N, K, D]
LAST = '["", "[-1]", "False", ""]'
SUB = ("sub", [[N, 1, D], [1, K, D], []], '["", "", "1"]')
MUL = ("mul", [[N, 1, D], [1, K, D]], '["", ""]')
POW = ("pow", [S, []], '["", "2"]')
SUM = ("sum", [S, [], [], []], LAST)
NORM = ("linalg_vector_norm", [S, [], [], [], []], '["", "2", "[-1]", "False", ""]')
Given = tuple[str, list[list[int]], str]


def calls(*given: Given) -> list[Call]:
    return [
        (1, place, f"aten::{name}", json.dumps(shapes), None, inputs)
        for place, (name, shapes, inputs) in enumerate(given)
    ]


@pytest.mark.parametrize(
    "given",
    [
        [SUB, POW, SUM],
        [("sub", [[N, 1, D], [K, D], []], '["", "", "1"]'), POW, ("mean", [S, [], [], []], LAST)],
        [SUB, ("mul", [S, S], '["", ""]'), SUM],
        [SUB, ("add", [S, [], []], '["", "1e-06", "1"]'), ("square", [S], '[""]'), SUM],
        [SUB, ("add", [[N, K], [N, K]], '["", ""]'), POW, SUM],
    ],
    ids=["power", "mean", "product with itself", "with a number", "beside another op"],
)
def test_squared_distances(given: list[Given]) -> None:
    [found] = pairs_of(calls(*given))
    assert (found.shape, found.pairs, found.squared, found.products) == ((N, K, D), N * K, True, 1)


def test_distances_products_and_sums_with_weights() -> None:
    assert pairs_of(calls(SUB, NORM)) == [Pairs((0, 1), (N, K, D), N * K, squared=True, products=1)]
    assert pairs_of(calls(MUL, SUM)) == [Pairs((0, 1), (N, K, D), N * K, squared=False, products=1)]
    weighted = ("mul", [[2, N, K, 1], [2, 1, K, D]], '["", ""]')
    added = ("sum", [[2, N, K, D], [], [], []], '["", "[-2]", "False", ""]')
    assert [each.pairs for each in pairs_of(calls(weighted, added))] == [2 * N * D]


def test_a_factor_of_one_side_takes_another_product() -> None:
    """As in the exponent of a mixture of Gaussians."""
    [found] = pairs_of(calls(SUB, POW, ("div", [S, [K, D]], '["", ""]'), SUM))
    assert found.products == 2


@pytest.mark.parametrize(
    "given",
    [
        [SUB, ("abs", [S], '[""]'), SUM],
        [SUB, ("pow", [S, []], '["", "3"]'), SUM],
        [SUB, SUM],
        [SUB, ("linalg_vector_norm", [S, [], [], [], []], '["", "1", "[-1]", "False", ""]')],
        [SUB, POW, ("sum", [S, [], [], []], '["", "[0]", "False", ""]')],
        [SUB, POW, ("sum", [S, []], '["", ""]')],
        [SUB, POW, ("amax", [S, [], []], '["", "[-1]", "False"]')],
        [SUB, POW, SUM, ("exp", [S], '[""]')],
        [("sub", [S, [1, K, D], []], '["", "", "1"]'), POW, SUM],
        [MUL, ("mul", [S, S], '["", ""]'), SUM],
        [SUB, POW, ("mul", [S, [K, 1]], "[]"), ("softmax", [S], "[]")],
        [SUB, POW],
        [
            ("sub", [[N, 1, 3], [1, K, 3], []], '["", "", "1"]'),
            ("pow", [[N, K, 3], []], '["", "2"]'),
            ("sum", [[N, K, 3], [], [], []], LAST),
        ],
    ],
    ids=[
        "absolute values",
        "cubes",
        "only a sum",
        "sum of absolute values",
        "a sum over one side",
        "a sum over all",
        "a maximum",
        "differences that are used",
        "one large side",
        "powers of products",
        "another function",
        "no sum",
        "points in space",
    ],
)
def test_what_no_matrix_product_computes(given: list[Given]) -> None:
    assert pairs_of(calls(*given)) == []


def test_another_thread_and_damaged_inputs() -> None:
    other: list[Call] = [(2, *call[1:]) for call in calls(POW, SUM)]
    assert pairs_of([*calls(SUB), *other]) == []
    for text in (None, "[", '["x"]'):
        assert pairs_of([(1, 0, "aten::sub", text, text, text), *calls(POW, SUM)]) == []
        assert pairs_of([*calls(SUB, POW), (1, 3, "aten::sum", json.dumps(SUM[1]), text, text)]) == []


def test_sides_that_were_expanded_have_strides_of_zero() -> None:
    def expanded(strides: list[list[int]]) -> list[Call]:
        begin = (1, 0, "aten::sub", json.dumps([S, S, []]), json.dumps(strides), '["", "", "1"]')
        return [begin, *calls(POW, SUM)]

    [found] = pairs_of(expanded([[D, 0, 1], [0, D, 1], []]))
    assert found.pairs == N * K
    assert pairs_of(expanded([[K * D, D, 1], [0, D, 1], []])) == []
