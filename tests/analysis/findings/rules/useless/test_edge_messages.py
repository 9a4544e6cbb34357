"""Messages along edges: what a sparse product would do, and what it would not."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.useless.edge_messages import RULE
from tests.analysis.findings.op_steps import Op, case

FLOATS = "float,float"
GATHER = Op("aten::index", "[[50000,64],[]]", "index_kernel", 300, dtypes=FLOATS)
SELECT = Op("aten::index_select", "[[50000,64],[],[800000]]", "index_kernel", 300, dtypes=FLOATS)
WEIGH = Op("aten::mul", "[[800000,64],[800000,1]]", "mul_kernel", 150, dtypes=FLOATS)
ZEROS = Op("aten::fill_", "[[50000,64],[]]", "fill_kernel", 5, dtypes=FLOATS)
ADD = Op("aten::index_add_", "[[50000,64],[],[800000],[800000,64],[]]", "add_kernel", 300, dtypes=FLOATS)
# 800,000 rows of 256 bytes at 4.0 to 4.8 TB/s are read in 43 to 51 µs.


@pytest.mark.parametrize("ops", [[GATHER, WEIGH, ZEROS, ADD], [SELECT, ADD]], ids=["weighed", "summed"])
def test_rows_that_are_gathered_and_added_up_are_a_sparse_product(ops: list[Op]) -> None:
    [found] = RULE.findings(case(*[ops] * 3))
    assert found.evidence["rows"] == 800_000
    assert found.evidence["table"] == 50_000
    assert 1.5 < found.speedup.low < found.speedup.mid < found.speedup.high < 12
    assert "to_sparse_csr" in found.fix


@pytest.mark.parametrize(
    "ops",
    [
        [GATHER, Op("aten::relu", "[[800000,64]]", "relu_kernel", 150, dtypes=FLOATS), ADD],
        [GATHER, Op("aten::mul", "[[800000,64],[800000,64]]", "mul_kernel", 150, dtypes=FLOATS), ADD],
        [GATHER, WEIGH, Op("aten::sum", "[[800000,64],[],[]]", "sum_kernel", 150, dtypes=FLOATS)],
        [GATHER, WEIGH, Op("aten::index_add_", "[[50000,64],[],[9],[9,64],[]]", "add_kernel", 300)],
        [GATHER, WEIGH, ADD, Op("aten::mul", "[[800000,64],[800000,64]]", "mul_kernel", 150)],
    ],
    ids=["a function of each", "a weight for each element", "not added up", "others", "trained weights"],
)
def test_messages_that_no_sparse_product_makes(ops: list[Op]) -> None:
    assert RULE.findings(case(*[ops] * 3)) == []


def test_little_of_the_step_is_not_worth_it() -> None:
    """Nor what takes no longer than reading the rows does."""
    short = [Op(each.name, each.shapes, each.kernel, 8, dtypes=FLOATS) for each in (GATHER, WEIGH, ADD)]
    assert RULE.findings(case(*[short] * 3)) == []
