"""Work on a matrix that stays, which each step of PyTorch does again on a CPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless import repeated_work
from stepscope.trace.trace import Trace
from tests.analysis.findings.rules.host_training import Call, case_of_calls
from tests.builders.cases import case_of

SIDE = 2000
MATRIX, ROWS, FEATURES = f"[{SIDE},{SIDE}]", f"[{SIDE},1]", f"[{SIDE},16]"
EYE = Call("aten::eye", 40, "[[],[],[]]", f'["{SIDE}","",""]')
ADD = Call("aten::add", 40, f"[{MATRIX},{MATRIX},[]]", '["","","1"]')
DEGREE = Call("aten::sum", 20, f"[{MATRIX},[],[]]", '["","[1]","False"]')
ROOT = Call("aten::rsqrt", 5, f"[[{SIDE}]]")
ROW = Call("aten::unsqueeze", 1, f"[[{SIDE}],[]]", '["","1"]')
SCALE = Call("aten::mul", 60, f"[{ROWS},{MATRIX}]")
PRODUCT = Call("aten::mm", 30, f"[{MATRIX},{FEATURES}]")
NORMALISE = (EYE, ADD, DEGREE, ROOT, ROW, SCALE)


def _kinds(shapes: str) -> str:
    return ",".join("float" if shape else "Scalar" for shape in json.loads(shapes))


def steps(*calls: Call, share: float = 0.002, side: int = SIDE) -> Case:
    case = case_of_calls(*(replace(each, dtypes=_kinds(each.shapes)) for each in calls))
    counted = {
        "framework": "torch",
        "shape": [side, side],
        "dtype": "float32",
        "rows": 256,
        "nonzero": share,
    }
    info = replace(case.trace.info, capture={"matrices": [counted]})
    return case_of(Trace({**case.trace.tables, "traces": info.frame()}))


def test_a_matrix_that_each_layer_normalises_again() -> None:
    found = repeated_work.find(steps(*NORMALISE, PRODUCT, *NORMALISE, PRODUCT))
    assert found is not None
    assert found.evidence["calls_per_step"] == 2
    assert found.share == pytest.approx(0.33, abs=0.01)
    assert 1.3 < found.speedup.low < found.speedup.mid == pytest.approx(1.5, abs=0.03)
    assert "before the first step" in found.fix


def test_at_worst_a_step_needs_it_once() -> None:
    """A matrix that has few zeros may be new in each step."""
    sure = repeated_work.find(steps(*NORMALISE, PRODUCT, *NORMALISE, PRODUCT))
    dense = repeated_work.find(steps(*NORMALISE, PRODUCT, *NORMALISE, PRODUCT, share=1.0))
    assert sure is not None and dense is not None
    assert dense.speedup.mid < sure.speedup.mid
    assert repeated_work.find(steps(*NORMALISE, PRODUCT)) is not None
    assert repeated_work.find(steps(*NORMALISE, PRODUCT, share=1.0)) is None


@pytest.mark.parametrize(
    "calls",
    [
        (*NORMALISE, PRODUCT, Call("aten::mm", 30, f"[{FEATURES},[16,{SIDE}]]")),
        (*NORMALISE, PRODUCT, Call("aten::bernoulli_", 30, f"[{MATRIX},[],[]]")),
        (Call("aten::add_", 200, f"[{MATRIX},{MATRIX},[]]"), PRODUCT),
        (*NORMALISE, PRODUCT, *NORMALISE),
        (Call("aten::mm", 5, "[[2000,16],[16,1]]"), SCALE, PRODUCT),
        (EYE, PRODUCT),
    ],
    ids=["made by a product", "random", "written to", "kept", "scaled by what changes", "only created"],
)
def test_what_may_change_is_computed_for_a_reason(calls: Sequence[Call]) -> None:
    assert repeated_work.find(steps(*calls)) is None


def test_a_matrix_that_was_not_found_afterwards() -> None:
    assert repeated_work.find(steps(*NORMALISE, PRODUCT, side=SIDE + 1)) is None
