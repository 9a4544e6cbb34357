"""Tables that are computed as a whole before few of their rows are gathered."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.useless.whole_table import find
from tests.builders.jobs.scoped_ops import Op, case_of_ops

UPDATE: list[Op] = [("AssignSubVariableOp", "sgd/AssignSubVariableOp", 50)]


def table(gather: int = 2, around: str = "user_1/", update: list[Op] = UPDATE) -> list[Op]:
    """Rows of 500 µs: a table is divided by its norm, and `gather` µs gather some rows."""
    back = f"gradient_tape/{around}"
    return [
        ("Square", f"{around}norm/Square", 100),
        ("RealDiv", f"{around}truediv", 100),
        ("GatherV2", f"{around}GatherV2", gather),
        ("MatMul", f"{around}dense/MatMul", 5),
        ("UnsortedSegmentSum", f"{back}truediv/RealDiv/x", 50),
        ("RealDiv", f"{back}truediv/RealDiv", 100),
        ("Tile", f"{back}norm/Tile", 50),
        ("AddN", "AddN_1", 50),
        *update,
    ]


@pytest.mark.parametrize("around", ["user_1/", ""])
def test_all_that_is_done_to_the_table_goes(around: str) -> None:
    found = find(case_of_ops(table(around=around)))
    assert found is not None
    assert found.evidence["ops"] == [f"{around}truediv"]
    assert found.share == pytest.approx(0.5, abs=0.01)
    assert found.speedup.mid == pytest.approx(2, rel=0.03)
    assert "tf.gather" in found.fix


def test_many_rows_are_gathered() -> None:
    assert find(case_of_ops(table(gather=30))) is None


def test_gradients_of_variables_stay_sparse() -> None:
    plain: list[Op] = [("ResourceGather", "Gather", 2), ("Mul", "user_1/mul", 400)]
    assert find(case_of_ops([*plain, ("UnsortedSegmentSum", "adam/UnsortedSegmentSum", 50)])) is None


def test_moments_are_updated_for_all_rows_anyway() -> None:
    moments: list[Op] = [*UPDATE, ("AssignVariableOp", "sgd/AssignVariableOp", 50)]
    found = find(case_of_ops(table(update=moments)))
    assert found is not None
    assert found.share == pytest.approx(0.45, abs=0.01)


def test_what_comes_before_layers_that_mix_rows_stays() -> None:
    """Messages between nodes: their last layer alone can follow the gather."""
    before: list[Op] = [("Relu", "user_1/relu/Relu", 100), ("MatMul", "user_1/mix/MatMul", 200)]
    found = find(case_of_ops([*before, *table()]))
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.01)
