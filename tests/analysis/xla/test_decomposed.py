"""Decompositions of matrices that nothing changes, in the code of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.xla.decomposed import unchanged_decompositions
from stepscope.analysis.xla.hlo_module import Module
from tests.builders.hlo import program

SIZE, COLUMNS = 64, 8
BYTES = 4 * SIZE * SIZE
GETRF = "cusolver_getrf_ffi"
MATRIX = "f32[64,64]"
GIVEN = "parameter(0)"
MINE = frozenset(("turned", "lu", "masked"))
ALONE, MADE = "out = (f32[64,8]) tuple(x)", "out = (f32[64,8], f32[64,64]) tuple(x, shifted)"


def solving(
    result: str = ALONE, given: str = GIVEN, of: str = "turned", target: str = GETRF, matrix: str = MATRIX
) -> Module:
    """A program that is given a matrix and right sides, factors the matrix or what it made of both, and returns the solution."""
    code = f"""
main:
  a = {matrix} {given}
  b = f32[64,8] parameter(1)
  turned = {matrix} transpose(a)
  shifted = f32[64,64] fusion(a, b)
  lu = (f32[64,64], s32[64]) custom-call({of}) target={target}
  factors = f32[64,64] get-tuple-element(lu) index=0
  pivots = s32[64] get-tuple-element(lu) index=1
  masked = f32[64,64] fusion(factors)
  order = s32[64] custom-call(pivots) target=cu_lu_pivots_to_permutation
  rows = f32[64,8] gather(b, order)
  x = f32[64,8] custom-call(masked, rows) target=__cublas$triangularSolve
  {result}
"""
    return Module(program(code))


def found_in(*modules: Module, copied: tuple[int, ...] = ()) -> list[frozenset[str]]:
    return unchanged_decompositions(modules, copied)


@pytest.mark.parametrize("target", [GETRF, "__cusolver$cholesky", "cusolver_syevd_ffi"])
def test_a_matrix_that_is_given_to_every_step(target: str) -> None:
    """The permutation stays: what is kept of a decomposition are its pivots."""
    assert found_in(solving(target=target), copied=(4 * SIZE * COLUMNS,)) == [MINE]


def test_a_matrix_that_is_part_of_the_code() -> None:
    assert found_in(solving(given="constant()"), copied=(BYTES,)) == [MINE]


@pytest.mark.parametrize(
    "module",
    [
        solving(MADE),  # the program makes the next one
        solving(of="shifted"),  # of right sides, which change
        solving(target="cu_lu_pivots_to_permutation"),
        solving(matrix="f32[4,64,64]"),  # a batch of matrices
    ],
)
def test_what_may_change_or_is_no_decomposition(module: Module) -> None:
    assert found_in(module) == [frozenset()]


def test_a_matrix_that_is_copied_to_the_device_or_made_by_another_program() -> None:
    assert found_in(solving(), copied=(BYTES,)) == [frozenset()]
    assert found_in(solving(), solving(MADE)) == [frozenset(), frozenset()]
