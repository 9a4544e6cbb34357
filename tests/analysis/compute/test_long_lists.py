"""Optimizers on lists that the profile leaves out: their size is that of the gradients."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.compute.long_lists import _parameters
from stepscope.analysis.formulas.lists import passes
from tests.analysis.compute.traces import compute_trace

ROWS = """
    track     start   dur  name                             kind        launches  shapes         dtypes
    main          0  1000  ProfilerStep#0                   annotation  -         -              -
    main         10    10  torch::autograd::AccumulateGrad  op          -         [[100,100]]    float
    main         30    10  torch::autograd::AccumulateGrad  op          -         [[100]]        float
    main       1000  1000  ProfilerStep#1                   annotation  -         -              -
    main       1010    10  torch::autograd::AccumulateGrad  op          -         [[100,100]]    float
    main       1030    10  torch::autograd::AccumulateGrad  op          -         [[100]]        float
"""


def test_the_gradients_of_a_step() -> None:
    trace = compute_trace(ROWS)
    assert trace.events["step"].drop_nulls().len()
    assert _parameters(trace) == 10_100


def test_without_gradients_nothing_is_known() -> None:
    trace = compute_trace("\n".join(ROWS.splitlines()[:3]))
    assert _parameters(trace) == 0
    assert isinstance(trace.ops, pl.DataFrame)


@pytest.mark.parametrize(
    ("name", "dtypes", "count"),
    [
        ("aten::_fused_adamw_", "", 7),
        ("aten::_foreach_add_", '["TensorList", "TensorList", "Scalar"]', 3),
        ("aten::_foreach_zero_", '["TensorList"]', 1),
        ("aten::_foreach_norm", '["TensorList", "Scalar"]', 1),
    ],
)
def test_how_often_lists_are_touched(name: str, dtypes: str, count: int) -> None:
    assert passes(name, dtypes) == count
