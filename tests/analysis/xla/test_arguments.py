"""Arguments and results of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.arguments import Argument, arguments_of, results_of
from stepscope.analysis.xla.hlo_module import Shape, read_module
from tests.builders.hlo import program

F32, S32, U32 = 11, 4, 8


def test_arguments_come_in_their_order_with_their_names() -> None:
    code = """
    main:
      b = s32[8,4] parameter(1) op_name=tokens
      a = f32[4,4] parameter(0) op_name=params['w']
      c = f32[4,4] add(a, a)
      d = s32[8,4] add(b, b)
      root = (f32[4,4], s32[8,4]) tuple(c, d)
    """.replace("\n    ", "\n")
    module = read_module(program(code))
    assert [(one.name, one.bytes) for one in arguments_of(module)] == [("params['w']", 64), ("tokens", 128)]
    assert results_of(module) == [Shape(F32, (4, 4)), Shape(S32, (8, 4))]


def test_a_program_that_returns_its_argument() -> None:
    module = read_module(program("main:\n  a = f32[4] parameter(0)\n"))
    assert results_of(module) == [Shape(F32, (4,))]


@pytest.mark.parametrize(
    ("name", "root", "is_leaf"),
    [
        ("params['dit']['ckv']", "params", True),
        ("state.layers[0].w", "state", True),
        ("args[1]['w']", "args[1]", True),
        ("args[1]", "args[1]", False),
        ("kwargs['mask']", "kwargs['mask']", False),
        ("tokens", "tokens", False),
        ("", "", False),
    ],
)
def test_weights_are_leaves_of_a_tree(name: str, root: str, is_leaf: bool) -> None:
    found = Argument(0, name, Shape(F32, (8, 8)))
    assert (found.root, found.may_be_weight) == (root, is_leaf)
    assert not Argument(0, name, Shape(S32, (8, 8))).may_be_weight


@pytest.mark.parametrize(
    ("element", "sizes", "is_small"),
    [(F32, (), True), (F32, (1,), True), (U32, (2,), True), (U32, (64,), False), (S32, (5,), False)],
)
def test_numbers_and_random_keys_are_small(element: int, sizes: tuple[int, ...], is_small: bool) -> None:
    assert Argument(0, "x", Shape(element, sizes)).is_small == is_small
