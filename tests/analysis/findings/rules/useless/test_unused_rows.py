"""Logits of all positions of which only some are read."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless import unused_rows
from stepscope.analysis.serving.workload import INFERENCE
from tests.analysis.findings.op_steps import GEMM, Op, case


def scoring(read: str, *passes: Op) -> list[Op]:
    """The head of a language model over 8 sequences of 512 tokens, of which only a part is looked at."""
    logits = "[8,512,32000]"
    return [
        Op("aten::mm", "[[4096,1024],[1024,4096]]", GEMM, 300),
        Op(
            "aten::linear",
            "[[8,512,4096],[4096,32000],[32000]]",
            inside=(Op("aten::addmm", "[[32000],[4096,4096],[4096,32000],[],[]]", GEMM, 500),),
        ),
        *passes,
        Op("aten::slice", f"[{logits},[],[],[],[]]"),
        Op("aten::argmax", f"[{read},[],[]]", "void at::native::reduce_kernel<argmax>", 30),
    ]


def test_logits_of_all_positions_of_which_the_last_is_read() -> None:
    found = unused_rows.find(case(*[scoring("[8,32000]")] * 3, workload=INFERENCE))
    assert found is not None
    assert found.evidence["positions"] == 512
    assert 1.5 < found.speedup.mid < 2.5


@pytest.mark.parametrize("read", ["[8,512,32000]", "[8,511,32000]", "[4096,32000]"])
def test_logits_that_are_scored_are_needed(read: str) -> None:
    assert unused_rows.find(case(*[scoring(read)] * 3, workload=INFERENCE)) is None


def test_a_cast_of_all_logits_is_spared_with_them() -> None:
    cast = Op(
        "aten::copy_", "[[8,512,32000],[8,512,32000],[]]", "void at::native::direct_copy_kernel_cuda", 150
    )
    plain = unused_rows.find(case(*[scoring("[8,32000]")] * 3, workload=INFERENCE))
    found = unused_rows.find(case(*[scoring("[8,32000]", cast)] * 3, workload=INFERENCE))
    assert found is not None and plain is not None
    assert found.share > plain.share
    assert unused_rows.find(case(*[scoring("[8,512,32000]", cast)] * 3, workload=INFERENCE)) is None


LOGITS = "[8,512,32000]"
INDEX = "void at::native::index_elementwise_kernel"


@pytest.mark.parametrize(
    "taken",
    [
        Op("aten::index", f"[{LOGITS},[]]", INDEX, 5),
        Op("aten::gather", f"[{LOGITS},[],[8,1,32000],[]]", "void at::native::gather", 5),
    ],
)
def test_logits_of_which_an_index_takes_the_last(taken: Op) -> None:
    ops = [taken if op.name == "aten::slice" else op for op in scoring("[8,32000]")]
    found = unused_rows.find(case(*[ops] * 3, workload=INFERENCE))
    assert found is not None
    assert found.evidence["positions"] == 512
    assert 1.5 < found.speedup.mid < 2.5


def cut(*views: Op) -> Case:
    """The head, and a softmax over two of its classes."""
    *head, _, _ = scoring(LOGITS)
    softmax = Op("aten::_softmax", "[[8,2],[],[]]", "void at::native::softmax_warp_forward", 5)
    return case(*[[*head, *views, softmax]] * 3, workload=INFERENCE)


def test_some_classes_of_the_last_position() -> None:
    """logits[:, -1, 42:44]: no kernel reads a whole row."""
    last = Op("aten::select", f"[{LOGITS},[],[]]", inside=(Op("aten::as_strided", f"[{LOGITS},[],[],[]]"),))
    classes = Op("aten::slice", "[[8,32000],[],[],[],[]]")
    found = unused_rows.find(cut(last, classes))
    assert found is not None
    assert found.evidence["positions"] == 512
    assert 1.5 < found.speedup.mid < 2.5


def test_some_classes_of_all_positions_or_of_rows_of_another_tensor() -> None:
    one_class = Op("aten::select", f"[{LOGITS},[],[]]")
    assert unused_rows.find(cut(one_class)) is None
    assert unused_rows.find(cut(one_class, Op("aten::slice", "[[8,512],[],[],[],[]]"))) is None
    assert (
        unused_rows.find(cut(Op("aten::slice", f"[{LOGITS},[]]"), Op("aten::slice", "[[8,32000]]"))) is None
    )


def test_classes_gathered_at_all_positions_need_all_rows() -> None:
    labels = Op("aten::gather", f"[{LOGITS},[],[8,512,1],[]]", "void at::native::gather", 5)
    assert unused_rows.find(case(*[scoring("[8,32000]", labels)] * 3, workload=INFERENCE)) is None


def test_the_rows_that_are_read_stay() -> None:
    """A mask that takes two fifths of the positions spares no more than the rest."""

    def gain(rows: int) -> float:
        taken = Op("aten::index", f"[{LOGITS},[]]", INDEX, 5)
        found = unused_rows.find(case(*[scoring(f"[{rows},32000]", taken)] * 3, workload=INFERENCE))
        assert found is not None
        return found.speedup.high

    assert gain(1600) < 0.8 * gain(8)


def test_halves_of_all_rows_are_all_read() -> None:
    """A gate and what it lets through are one product, which views take apart by its columns."""
    half = "[8,512,3072]"
    gated = [
        Op("aten::mm", "[[4096,1024],[1024,6144]]", GEMM, 600),
        Op("aten::slice", "[[8,512,6144],[],[],[],[]]"),
        Op("aten::silu", f"[{half}]", "void at::native::silu_kernel", 30),
        Op("aten::mul", f"[{half},{half}]", "void at::native::elementwise_kernel", 30),
    ]
    assert unused_rows.find(case(*[gated] * 3, workload=INFERENCE)) is None


def test_training_needs_all_positions() -> None:
    assert unused_rows.find(case(*[scoring("[8,32000]")] * 3)) is None
