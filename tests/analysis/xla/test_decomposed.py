"""Decompositions of matrices that nothing changes, in the code of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.decomposed import unchanged_decompositions, work_on_unchanged
from stepscope.analysis.xla.hlo_module import Module
from tests.analysis.xla.test_instruction_cost import F32, made, reads
from tests.analysis.xla.test_loops import computation
from tests.analysis.xla.test_one_hot import shaped
from tests.builders.protobuf import field

SIZE, COLUMNS = 64, 8
BYTES = 4 * SIZE * SIZE
GETRF, TRIANGULAR = "cusolver_getrf_ffi", "__cublas$triangularSolve"
MATRIX, RIGHT = shaped(F32, SIZE, SIZE), shaped(F32, SIZE, COLUMNS)
LU = ("lu", f"[[{SIZE},{SIZE}]]")


def solving(*returned: int, matrix: bytes = MATRIX, decomposed: int = 12, target: str = GETRF) -> Module:
    """A program that is given a matrix and right sides, factors the matrix or what it made of both, and returns the solution."""
    entry = computation(
        1,
        made("a", "parameter", 10, matrix),
        made("b", "parameter", 11, RIGHT, field(9, 1)),
        made("turned", "transpose", 12, matrix, reads(10)),
        made("shifted", "fusion", 13, MATRIX, reads(10, 11)),
        made("lu", "custom-call", 14, MATRIX, reads(decomposed), field(28, target)),
        made("x", "custom-call", 15, RIGHT, reads(14, 11), field(28, TRIANGULAR)),
        made("out", "tuple", 16, field(3, field(2, 13) + _parts(*returned)), reads(15, *returned)),
    )
    return Module(field(1, entry + field(6, 1)))


def _parts(*returned: int) -> bytes:
    """The shapes of the solution and of what else is returned, as parts of a tuple."""
    return b"".join(field(4, shape[_head(shape) :]) for shape in (RIGHT, *([MATRIX] * len(returned))))


def _head(shape: bytes) -> int:
    """How many bytes the key and the length of a short field take."""
    return len(shape) - shape[1]


def test_a_matrix_that_is_given_to_every_step() -> None:
    assert unchanged_decompositions([solving()], {4 * SIZE * COLUMNS}) == {LU}


@pytest.mark.parametrize(
    "module",
    [
        solving(13),  # the program makes the next one
        solving(decomposed=13),  # of right sides, which change
        solving(target="cu_lu_pivots_to_permutation"),
        solving(matrix=shaped(F32, 4, SIZE, SIZE)),  # a batch of matrices
    ],
)
def test_what_may_change_or_is_no_decomposition(module: Module) -> None:
    assert unchanged_decompositions([module], ()) == set()


def test_a_matrix_that_is_copied_to_the_device_or_made_by_another_program() -> None:
    assert unchanged_decompositions([solving()], {BYTES}) == set()
    assert unchanged_decompositions([solving(), solving(13)], ()) == set()


def test_what_needs_nothing_but_the_matrix_goes_with_the_decomposition() -> None:
    turned = ("turned", f"[[{SIZE},{SIZE}]]")
    assert work_on_unchanged([solving()], ()) == {LU, turned}
    assert work_on_unchanged([solving(13)], ()) == set()
