"""Rules that look at ops where there is no device: float64, attention, logits, checkpoints, repeated passes, broadcasts, one-hot products, zeros."""

from __future__ import annotations

import dataclasses

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.kernels import double_precision, unfused_attention
from stepscope.analysis.findings.rules.useless import (
    broadcast_product,
    dense_zeros,
    dropout_in_inference,
    one_hot_product,
    repeated_backward,
    unused_rows,
)
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.trace.trace import Trace
from tests.analysis.findings.rules.host_training import Call, backward, case_of_calls, forward, gradient


def case(*calls: Call, workload: str = TRAINING) -> Case:
    return dataclasses.replace(case_of_calls(*calls), workload=workload)


LOGITS = Call("aten::addmm", 600, "[[9000],[512,64],[64,9000]]")


def test_logits_of_all_positions_of_which_one_is_read() -> None:
    last = Call("aten::select", 1, "[[8,64,9000],[],[]]")
    read = Call("aten::argmax", 5, "[[8,9000],[],[]]")
    found = unused_rows.find(case(LOGITS, last, read, workload=INFERENCE))
    assert found is not None
    assert 1.8 < found.speedup.mid < 2.5
    everything = Call("aten::argmax", 50, "[[8,64,9000],[],[]]")
    assert unused_rows.find(case(LOGITS, last, read, everything, workload=INFERENCE)) is None
    assert unused_rows.find(case(LOGITS, last, read)) is None


@pytest.mark.parametrize(("length", "is_found"), [(128, False), (256, True)])
def test_attention_of_long_sequences(length: int, is_found: bool) -> None:
    table, side = f"[8,{length},{length}]", f"[8,{length},32]"
    calls = (
        Call("aten::bmm", 200, f"[{side},[8,32,{length}]]"),
        Call("aten::_softmax", 200, f"[{table},[],[]]"),
        Call("aten::bmm", 200, f"[{table},{side}]"),
    )
    found = unfused_attention.find(case(*calls))
    assert (found is not None) == is_found


def test_passes_that_are_repeated() -> None:
    added = gradient("[64,64]")
    again = repeated_backward.find(case(forward(100), backward(300), added, backward(300), added))
    assert again is not None
    assert 1.3 < again.speedup.mid < 1.5
    assert repeated_backward.find(case(forward(100), backward(300), added)) is None


def test_derivatives_of_one_output_after_the_other() -> None:
    """Long ops take as long in one pass, at worst; short ones take what it costs to call them."""
    for length, count, most in ((20, 12, 3), (100, 6, 2)):
        rows = case(forward(30), *[backward(length)] * count)
        found = repeated_backward.find(rows)
        assert found is not None
        assert found.title == "Derivatives are computed one output at a time"
        assert "is_grads_batched=True" in found.fix and "sum of the losses" not in found.fix
        assert found.evidence["passes"] == count
        assert 1 <= found.speedup.low < found.speedup.high < most


def test_dropout_in_inference() -> None:
    drop = Call("aten::dropout", 1, "[[64,64]]", inside=(Call("aten::bernoulli_", 500, "[[64,64]]"),))
    found = dropout_in_inference.find(case(drop, workload=INFERENCE))
    assert found is not None
    assert found.speedup.mid == pytest.approx(2, abs=0.1)
    assert dropout_in_inference.find(case(drop)) is None


def test_distances_by_a_broadcast() -> None:
    calls = (
        Call("aten::sub", 200, "[[500,1,64],[1,200,64],[]]"),
        Call("aten::pow", 300, "[[500,200,64],[]]", '["","2"]'),
        Call("aten::sum", 100, "[[500,200,64],[],[],[]]", '["","[-1]","False",""]'),
    )
    found = broadcast_product.find(case(*calls))
    assert found is not None
    assert found.speedup.mid > 2
    assert (
        broadcast_product.find(case(*calls[:2], Call("aten::abs", 100, "[[500,200,64]]"), calls[2])) is None
    )


def test_lookups_by_a_one_hot_product() -> None:
    made = Call(
        "aten::one_hot", 1, "[[640],[]]", inside=(Call("aten::scatter_", 100, "[[640,4000],[],[640,1],[]]"),)
    )
    found = one_hot_product.find(case(made, Call("aten::mm", 500, "[[640,4000],[4000,64]]")))
    assert found is not None
    assert found.speedup.mid > 2
    assert one_hot_product.find(case(Call("aten::mm", 500, "[[640,4000],[4000,64]]"))) is None


@pytest.mark.parametrize(("nonzero", "is_found"), [(0.002, True), (0.05, False), (1.0, False)])
def test_zeros_that_were_counted(nonzero: float, is_found: bool) -> None:
    made = case(Call("aten::mm", 700, "[[3300,3300],[3300,64]]"))
    row = {"framework": "torch", "shape": [3300, 3300], "dtype": "float32", "rows": 254, "nonzero": nonzero}
    info = dataclasses.replace(made.trace.info, capture={"matrices": [row]})
    trace = Trace({**made.trace.tables, "traces": info.frame()})
    assert (dense_zeros.find(dataclasses.replace(made, trace=trace)) is not None) == is_found


def test_single_precision_and_numbers_are_not_double() -> None:
    assert double_precision.find(case(forward(500))) is None
