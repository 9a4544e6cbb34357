"""How large the results of ops are."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.repeats.kinds import may_hold_integers
from stepscope.analysis.repeats.op_call import Op
from stepscope.analysis.repeats.results import is_random, result_sizes


def op(name: str, shapes: list[object], types: str = "", inputs: list[str] | None = None) -> Op:
    """A call whose inputs are arrays of floats, unless `types` says otherwise."""
    kinds = types.split(",") if types else ["float" if shape else "Scalar" for shape in shapes]
    return Op(
        f"aten::{name}", json.dumps(shapes), json.dumps(kinds), json.dumps(inputs or [""] * len(shapes))
    )


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (op("linear", [[4, 16, 64], [32, 64], [32]]), {4 * 16 * 32}),
        (op("add", [[4, 1, 64], [16, 64]]), {4 * 16 * 64}),
        (op("matmul", [[4, 8, 16], [16, 2]]), {4 * 8 * 2}),
        (op("bmm", [[4, 8, 16], [4, 16, 2]]), {4 * 8 * 2}),
        (op("embedding", [[100, 64], [4, 16]], "float,long int"), {4 * 16 * 64}),
        (op("arange", [[], []], "Scalar,", ["1", "13"]), {12}),
        (op("arange", [[], []], "Scalar,", ["64", ""]), {64}),
        (op("zeros", [[], []], "ScalarList,Scalar", ["[2, 3]", "6"]), {6}),
        (op("sum", [[4, 16, 64], []], "float,ScalarList", ["", "[-1]"]), {64}),
        (op("sum", [[4, 16]]), {1}),
        (op("select", [[4, 16], [], []], "float,Scalar,Scalar", ["", "1", "0"]), {4}),
        (op("slice", [[4, 16], [], [], [], []], "float,Scalar,Scalar,Scalar,Scalar", ["", "1", "0", "-1", "1"]), {60}),
        (op("slice", [[4, 16], [], [], [], []], "float,Scalar,Scalar,Scalar,Scalar", ["", "1", "2", "9223372036854775807", "2"]), {28}),
        (op("chunk", [[4, 9], [], []], "float,Scalar,Scalar", ["", "2", "1"]), {20, 16}),
        (op("expand", [[1, 16], []], "float,ScalarList", ["", "[4, -1]"]), {64}),
        (op("conv2d", [[2, 3, 32, 32], [8, 3, 3, 3], [], [], [], [], []], "float,float,,ScalarList,ScalarList,ScalarList,Scalar", ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]), {2 * 8 * 16 * 16}),
        (op("cat", [[[4, 8], [4, 2]], []], "TensorList,Scalar", ["", "1"]), {40}),
        (op("index", [[100, 8], [[7]]], "float,TensorList", ["", ""]), {56}),
        (op("add_", [[4, 8], [8]]), {32}),
        (op("cross_entropy_loss", [[4, 8], [4]], "float,long int"), {1}),
        (op("sum", [[4, 16], []], "float,ScalarList", ["", "[]"]), {1}),
        (op("select", [[4, 16], [], []], "float,ScalarList,Scalar", ["", "[]", "0"]), None),
        (op("slice", [[4, 16], [], []], "float,ScalarList,Scalar", ["", "[]", "0"]), None),
        (op("narrow", [[4, 16], [], [], []], "float,ScalarList,Scalar,ScalarList", ["", "[]", "0", "[]"]), None),
        (op("index_select", [[4, 16], [], [3]], "float,ScalarList,long int", ["", "[]", ""]), None),
        (op("topk", [[4, 16], []], "float,ScalarList", ["", "[]"]), None),
        (op("eye", [[]], "ScalarList", ["[]"]), {1}),
        (op("cat", [[], []], "TensorList,Scalar", ["", "1"]), None),
        (op("linear", [[0, 64], [32, 64], [32]]), {0}),
        (op("add", [[0, 64], [64]]), {0}),
        (op("of_some_library", [[4, 8]]), None),
        (op("linear", []), None),
    ],
)  # fmt: skip
def test_elements_of_results(call: Op, sizes: set[int] | None) -> None:
    assert result_sizes(call) == sizes


def test_unreadable_inputs_say_nothing() -> None:
    assert result_sizes(Op("aten::add", "[[4,", "nothing", None)) is None
    assert result_sizes(Op("aten::add", None, None, None)) is None


def test_results_that_may_be_indices() -> None:
    assert may_hold_integers(op("argmax", [[4, 8]]))
    assert may_hold_integers(op("add", [[4], [4]], "long int,long int"))
    assert not may_hold_integers(op("add", [[4], [4]]))
    assert not may_hold_integers(op("embedding", [[100, 64], [4]], "float,long int"))
    assert not may_hold_integers(op("cross_entropy_loss", [[4, 8], [4]], "float,long int"))


def test_what_is_drawn_at_random() -> None:
    types = "float,Scalar,Scalar"
    assert is_random(op("dropout", [[4], [], []], types, ["", "0.1", "True"]))
    assert not is_random(op("dropout", [[4], [], []], types, ["", "0.1", "False"]))
    assert not is_random(op("dropout", [[4], [], []], types, ["", "0.", "True"]))
    assert is_random(op("native_dropout", [[4], [], []], types, ["", "0.1", "True"]))
    assert is_random(op("dropout", [[4], [], []], types))  # nothing was recorded
    assert is_random(op("rrelu", [[4], [], [], []], "", ["", "0.1", "0.3", "True"]))
    assert not is_random(op("rrelu", [[4], [], [], []], "", ["", "0.1", "0.3", "False"]))
    assert is_random(op("normal_", [[4]]))
    assert not is_random(op("linear", [[4, 8], [8, 8]]))


@pytest.mark.parametrize(
    "name",
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "random_",
        "normal",
        "normal_",
        "uniform_",
        "bernoulli",
        "bernoulli_",
        "exponential_",
        "multinomial",
        "log_normal_",
        "cauchy_",
        "geometric_",
        "poisson",
        "binomial",
        "_standard_gamma",
        "_sample_dirichlet",
        "normal_functional",
        "_fused_dropout",
    ],
)
def test_every_way_to_draw_at_random(name: str) -> None:
    assert is_random(op(name, [[4]]))


@pytest.mark.parametrize(
    "name",
    [
        "layer_norm",
        "lgamma",
        "digamma",
        "poisson_nll_loss",
        "normalize",
        "instance_norm",
        "geqrf",
        "linalg_norm",
    ],
)
def test_names_that_only_look_like_it(name: str) -> None:
    assert not is_random(op(name, [[4]]))


@pytest.mark.parametrize(
    ("inputs", "drops"),
    [
        (["", "", "", "True", "2", "0.5", "True", "False", "True"], True),
        (["", "", "", "True", "2", "0.5", "False", "False", "True"], False),
        (["", "", "", "True", "1", "0.", "True", "False", "True"], False),
        (["", "", "", "", "True", "2", "0.5", "True", "False"], True),
        (["", "", "", "", "True", "2", "0.5", "False", "False"], False),
        ([], True),
    ],
)
def test_dropout_of_recurrent_networks(inputs: list[str], drops: bool) -> None:
    assert is_random(op("lstm", [[4, 8, 16]], "float", inputs)) is drops
