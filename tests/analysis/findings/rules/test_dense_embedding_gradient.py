"""Dense gradients of embedding tables on a CPU, where ops fill and update them by themselves."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.rules.kernels.dense_embedding_gradient import RULE
from tests.analysis.findings.rules.host_training import (
    ENGINE,
    Call,
    backward,
    case_of_calls,
    forward,
    gradient,
    optimizer,
)

TABLE, ROWS = "[500000,64]", 500000


def lookup(batch: int = 1024) -> Call:
    return Call("aten::embedding", 20, f"[{TABLE},[{batch}]]", sequence="1")


def dense_backward(fill: int, batch: int = 1024) -> Call:
    zeros = Call("aten::fill_", fill, f"[{TABLE},[]]")
    op = Call(
        "aten::embedding_dense_backward",
        10,
        f"[[{batch},64],[{batch}],[],[],[]]",
        inputs=f'["","","{ROWS}","-1","False"]',
        inside=(zeros,),
    )
    return Call(f"{ENGINE} EmbeddingBackward0", 1, sequence="1", inside=(op,))


def training(*updates: Call, batch: int = 1024, head: str = "[[1024,64],[64,256]]") -> tuple[Call, ...]:
    around = (backward(60), gradient("[256,64]"), dense_backward(150, batch), gradient(TABLE))
    return (lookup(batch), forward(60, head), *around, optimizer(*updates))


def add(length: int, shapes: str = f"[{TABLE},{TABLE},[]]") -> Call:
    return Call("aten::add_", length, shapes)


def test_a_table_that_the_optimizer_updates_as_a_whole() -> None:
    found = {
        each.code: each for each in apply_rules(case_of_calls(*training(add(400), add(5, "[[256,64]]"))))
    }
    assert "host-python" not in found
    mine = found["dense-embedding-gradient"]
    assert mine.speedup.low < 1000 / 450 < mine.speedup.high
    assert "sparse=True" in mine.fix
    assert "0.20 % of the rows" in mine.detail


def test_a_list_of_tensors_counts_by_its_tables() -> None:
    fused = "aten::_fused_adam_"
    half = Call(fused, 400, f"[[{TABLE},[500000,64,1]],[]]")
    whole = Call(fused, 400, f"[[{TABLE}],[]]")
    (less,), (more,) = (RULE.findings(case_of_calls(*training(each))) for each in (half, whole))
    assert less.speedup.mid == pytest.approx(1 / (1 - 0.35), rel=0.02)
    assert more.speedup.mid == pytest.approx(1 / (1 - 0.55), rel=0.02)


@pytest.mark.parametrize(
    "steps",
    [
        training(add(400), batch=100000),
        training(add(400), head=f"[[1024,64],{TABLE}]"),
        training(add(400), head="[[1024,64],[64,500000]]"),
        (*training(add(20))[:2], dense_backward(100), optimizer(add(20))),
    ],
    ids=["most rows", "table of a head", "its transpose", "little time"],
)
def test_tables_that_need_dense_gradients(steps: tuple[Call, ...]) -> None:
    assert RULE.findings(case_of_calls(*steps)) == []
