"""Products with huge square matrices: those that may be mostly zeros, those that are by the capture's count, and full ones."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless import dense_zeros
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.trace.trace import Trace
from tests.analysis.findings.op_steps import case
from tests.analysis.findings.test_useless import product
from tests.builders.cases import case_of


def test_a_product_with_a_huge_square_matrix() -> None:
    found = dense_zeros.find(case(*[[product("[[16384,16384],[16384,128]]")]] * 3))
    assert found is not None
    assert found.evidence["side"] == 16384
    assert found.speedup.mid > 1.3


GRAPH = "[[16384,16384],[16384,128]]"
LAYER = "[[16384,1024],[1024,1024]]"


def counted(nonzero: float, side: int = 16384, dtype: str = "float32") -> dict[str, object]:
    return {
        "framework": "torch",
        "shape": [side, side],
        "dtype": dtype,
        "rows": 253,
        "nonzero": nonzero,
    }


def with_matrices(
    rows: object, workload: str = INFERENCE, framework: str = "pytorch", graph: str = GRAPH
) -> Case:
    """Steps with a product by a matrix of a graph, of which the capture counted the entries."""
    made = case(*[[product(graph, 700), product(LAYER, 200)]] * 3, workload=workload)
    info = dataclasses.replace(made.trace.info, capture={"matrices": rows}, framework=framework)
    trace = Trace({**made.trace.tables, "traces": info.frame()})
    return dataclasses.replace(case_of(trace), workload=workload)


def test_a_huge_matrix_whose_zeros_were_counted() -> None:
    found = dense_zeros.find(with_matrices([counted(1 / 2048)]))
    assert found is not None
    assert "1 of 2,048 entries is not zero (8 in a row)" in found.detail
    assert found.title == "Products multiply by a huge matrix that is mostly zeros"
    assert found.certainty == 1
    assert found.speedup.high / found.speedup.low < 1.8
    denser = dense_zeros.find(with_matrices([counted(1 / 256)]))
    assert denser is not None
    assert denser.speedup.high < found.speedup.high
    assert denser.speedup.low < found.speedup.low


def test_training_by_a_sparse_matrix_may_be_slow_in_pytorch_alone() -> None:
    inference, training, jax = (
        dense_zeros.find(with_matrices([counted(1 / 2048)], workload, framework))
        for workload, framework in ((INFERENCE, "pytorch"), (TRAINING, "pytorch"), (TRAINING, "jax"))
    )
    assert inference is not None
    assert training is not None
    assert jax is not None
    assert training.speedup.low < jax.speedup.low
    assert training.speedup.low < inference.speedup.low


def test_autograd_sorts_the_entries_in_pytorch_unless_the_transpose_is_kept() -> None:
    training, jax = (
        dense_zeros.find(with_matrices([counted(1 / 2048)], TRAINING, framework))
        for framework in ("pytorch", "jax")
    )
    assert training is not None
    assert jax is not None
    assert training.speedup.high < training.evidence["with_transpose"]
    assert "With a CSR matrix of its transpose for the backward pass, up to" in training.detail
    assert "with_transpose" not in jax.evidence
    assert "transpose" not in jax.detail


@pytest.mark.parametrize("columns", [1, 2, 4, 16, 64, 512])
def test_the_ends_are_in_order_however_narrow_the_other_matrix_is(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sort takes as long for one column as for many, in which the way that sorts nothing is fast."""
    left: list[pl.DataFrame] = []

    def note(case: Case, rule: object, chosen: pl.DataFrame, *_: object, **__: object) -> None:
        left.append(chosen)

    monkeypatch.setattr(dense_zeros, "of_kernels", note)
    graph = f"[[16384,16384],[16384,{columns}]]"
    dense_zeros.find(with_matrices([counted(1 / 4096)], TRAINING, graph=graph))
    for chosen in left:
        assert (chosen["least"] <= chosen["most"]).all()
    assert left


@pytest.mark.parametrize("nonzero", [0.05, 0.3, 1.0])
def test_a_huge_matrix_that_is_not_mostly_zeros(nonzero: float) -> None:
    assert dense_zeros.find(with_matrices([counted(nonzero)])) is None


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "damaged",
        [counted(0.001, side=8192)],
        [counted(0.001, dtype="complex128x")],
        [counted(-1), counted(float("nan")), {"shape": [16384]}, 7, None],
        [counted(0.0001), counted(0.9)],  # which of them the product multiplies by is not known
    ],
)
def test_a_matrix_that_was_not_counted(rows: object) -> None:
    found, unknown = (dense_zeros.find(with_matrices(each)) for each in (rows, []))
    assert found is not None
    assert found == unknown
    assert found.title == dense_zeros.RULE.title


@pytest.mark.parametrize(
    "shapes",
    [
        ["[[16384,128],[128,16384]]", "[[16384,16384],[16384,128]]"],  # a product makes it: similarities
        ["[[256,4096],[4096,4096]]"],  # a layer
        ["[[4096,4096],[4096,4096]]"],
        ["damaged"],
    ],
)
def test_square_matrices_that_are_full(shapes: list[str]) -> None:
    assert dense_zeros.find(case(*[[product(each) for each in shapes]] * 3)) is None
