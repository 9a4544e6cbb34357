"""Explicit inverses, and LU decompositions of positive definite matrices, in steps of compiled programs."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.analysis.xla.factors.codes import (
    INVERSE,
    KERNEL,
    MADE,
    PRODUCT,
    ROWS,
    SOLVED,
    SQUARE,
    SQUARED,
    VARIANCE,
    code_of,
)
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

# What an H200 takes for 8,192 rows, in µs: a decomposition, two solves with as many right sides, a product with 2,048.
SIZE, COLUMNS = "8192", "2048"
TIMES = {
    "zz": 300,
    "k": 100,
    "lu": 32400,
    "factor": 100,
    "eye": 100,
    "first": 15500,
    "second": 15500,
    "w": 4000,
}
SOLVES = {"zz": 300, "k": 100, "lu": 32400, "factor": 100, "first": 800, "second": 800}
INDEFINITE = KERNEL.replace("add(rows, columns)", "add(rows, rows)")


def found_in(code: str, times: dict[str, int]) -> Finding:
    """What is found in steps that run this program."""
    code = code.replace("f32[64,", f"f32[{COLUMNS},").replace(str(ROWS), SIZE)
    trace = program_trace(runs_in_steps([("jit_run", list(times.items()))]), jit_run=program(code))
    return {one.code: one for one in apply_rules(case_of(trace))}["slow-op"]


@pytest.mark.parametrize(("code", "solves"), [(code_of(), 2), (code_of(INVERSE + VARIANCE, more=SQUARED), 1)])
def test_products_with_the_inverse_of_a_covariance(code: str, solves: int) -> None:
    """Measured: 8.2 ms for Cholesky's decomposition, 5.3 for a solve with 2,048 right sides; a quadratic form needs one, others two."""
    found = found_in(code, TIMES)
    assert found.class_ == "time"
    assert found.title == "A matrix is inverted for a few products"
    assert "of a symmetric positive definite matrix of 8,192 rows" in found.detail
    assert "only products with 2,048 columns are used" in found.detail
    assert "cho_factor" in found.fix and "solve_triangular" in found.fix
    gain = sum(TIMES.values()) / (400 + 8200 + solves * 5300)
    assert found.speedup.low < 0.9 * gain < 1.1 * gain < found.speedup.high < 2 * found.speedup.low


def test_an_inverse_of_another_matrix_only_has_fewer_right_sides() -> None:
    found = found_in(code_of(kernel=INDEFINITE), TIMES)
    assert found.class_ == "time" and "of a matrix of 8,192 rows" in found.detail
    assert found.fix.startswith("Solve for what is needed")
    whole = sum(TIMES.values())
    assert found.speedup.low < whole / (400 + 32500 + 2 * 5300) < found.speedup.high < 2


def test_a_solve_with_a_positive_definite_matrix() -> None:
    found = found_in(code_of(SOLVED), SOLVES)
    assert found.title == "A positive definite matrix is decomposed by LU"
    assert "cho_solve" in found.fix and "slogdet" in found.fix
    whole = sum(SOLVES.values())
    assert found.speedup.low < whole / (400 + 8200 + 1600) < found.speedup.high


@pytest.mark.parametrize(
    ("code", "times"),
    [
        (code_of(INVERSE + f"  out = ({SQUARE}) tuple(inverse)\n"), TIMES),  # the inverse is the result
        (code_of(INVERSE + PRODUCT.replace("tuple(w)", "tuple(w, inverse)")), TIMES),
        (code_of(SOLVED, kernel=INDEFINITE), SOLVES),  # LU is the right way there
        (code_of(kernel=INDEFINITE).replace("f32[64,", f"f32[{ROWS},"), TIMES),  # as many right sides as before
    ],
)  # fmt: skip
def test_near_misses_promise_nothing(code: str, times: dict[str, int]) -> None:
    found = found_in(code, times)
    assert found.class_ == "advice" and found.speedup.mid == 1.0


def test_little_time() -> None:
    short = {"zz": 90000, "w": 9000, **dict.fromkeys(("lu", "factor", "eye", "first", "second"), 300)}
    trace = program_trace(
        runs_in_steps([("jit_run", list(short.items()))]), jit_run=program(code_of(made=MADE))
    )
    assert "slow-op" not in {one.code for one in apply_rules(case_of(trace))}
