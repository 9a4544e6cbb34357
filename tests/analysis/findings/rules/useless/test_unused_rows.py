"""Logits of all positions of which only some are read, or have a label."""

from __future__ import annotations

import dataclasses

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless import unused_rows
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.trace.trace import Trace
from tests.analysis.findings.op_steps import GEMM, Op, case
from tests.builders.cases import case_of


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


def of_one_request(axis: int, *views: Op) -> Case:
    """The head for the 4096 tokens of one request, of which views take a vector."""
    head, linear, *_ = scoring(LOGITS)
    chosen = Op("aten::select", "[[4096,32000],[],[]]", inputs=f'["","{axis}","-1"]')
    argmax = Op("aten::argmax", "[[32000],[],[]]", "void at::native::reduce_kernel<argmax>", 30)
    return case(*[[head, linear, *views, chosen, argmax]] * 3, workload=INFERENCE)


def test_the_last_row_of_one_request_is_a_vector() -> None:
    """logits[0, -1] and logits.squeeze(0)[-1]: no kernel reads a matrix of logits."""
    sample = Op("aten::select", "[[1,4096,32000],[],[]]", inputs='["","0","0"]')
    for views in ((sample,), ()):
        found = unused_rows.find(of_one_request(0, *views))
        assert found is not None
        assert found.evidence["positions"] == 4096
        assert 1.5 < found.speedup.mid < 2.5
    assert unused_rows.find(of_one_request(1)) is None


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

    assert gain(1600) < 0.9 * gain(8)


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


def stepped(count: int, view: str, inputs: str, read: str) -> Case:
    """A product for 8 sequences of 16 positions, of which views take a part so often, each with the placeholder's number."""
    parts = []
    for place in range(count):
        parts.append(Op(view, "[[8,16,3072]]", inputs=inputs.replace("N", str(place))))
        parts.append(Op("aten::add", f"[{read},{read},[]]", "void at::native::elementwise_kernel", 2))
    return case(*[[Op("aten::mm", "[[128,1024],[1024,3072]]", GEMM, 300), *parts]] * 3, workload=INFERENCE)


@pytest.mark.parametrize(
    ("count", "view", "inputs", "read"),
    [
        (16, "aten::select", '["","1","N"]', "[8,3072]"),  # the inputs of a recurrence, projected before it
        (8, "aten::select", '["","0","N"]', "[16,3072]"),  # sample by sample
        (4, "aten::slice", '["","1","0","4","1"]', "[8,4,3072]"),  # in pieces
    ],
)
def test_rows_that_views_take_one_after_the_other_are_all_read(
    count: int, view: str, inputs: str, read: str
) -> None:
    assert unused_rows.find(stepped(count, view, inputs, read)) is None
    assert unused_rows.find(stepped(count // 4, view, inputs, read)) is not None


def test_training_needs_all_positions() -> None:
    assert unused_rows.find(case(*[scoring("[8,32000]")] * 3)) is None


ROWS, CLASSES = 4096, 32000
TRAINED = f"[{ROWS},{CLASSES}]"
SOFTMAX = "void at::native::cunn_SoftMaxForward"
COPIES = "void at::native::direct_copy_kernel_cuda"


def loss(logits: str, length: int = 150) -> list[Op]:
    """Cross-entropy over logits, with their cast to fp32."""
    return [
        Op("aten::copy_", f"[{logits},{logits},[]]", COPIES, length // 2),
        Op("aten::_log_softmax", f"[{logits},[],[]]", SOFTMAX, length),
        Op("aten::nll_loss_forward", f"[{logits},[{ROWS}],[],[],[]]", "void at::native::nll_loss", 2),
    ]


def training(logits: str = TRAINED, *more: Op, classes: int = CLASSES) -> list[Op]:
    """A layer, the head, the loss, and the backward pass of the head."""
    return [
        Op("aten::mm", f"[[{ROWS},1024],[1024,4096]]", GEMM, 100),
        Op("aten::addmm", f"[[{classes}],[{ROWS},1024],[1024,{classes}],[],[]]", GEMM, 150),
        *more,
        *loss(logits),
        Op("aten::_log_softmax_backward_data", f"[{logits},{logits},[],[]]", SOFTMAX, 150),
        Op("aten::mm", f"[[{ROWS},{classes}],[{classes},1024]]", GEMM, 100),
        Op("aten::mm", f"[[{classes},{ROWS}],[{ROWS},1024]]", GEMM, 100),
        Op("aten::add_", f"[[{classes},1024],[{classes},1024],[]]", COPIES, 30),
    ]


def counted(ignored: float, *shape: int) -> dict[str, object]:
    """As the capture notes a loss."""
    sides = list(shape or (ROWS, CLASSES))
    size = {"shape": sides, "dtype": "float32", "calls": 3, "labels": 3 * ROWS}
    return {"framework": "torch", **size, "ignored": ignored}


def with_labels(rows: object, ops: list[Op] | None = None) -> Case:
    """Three steps of training, of which the capture counted the labels."""
    made = case(*[training() if ops is None else ops] * 3)
    info = dataclasses.replace(made.trace.info, capture={"labels": rows}, framework="pytorch")
    return case_of(Trace({**made.trace.tables, "traces": info.frame()}))


def found_in(rows: object, ops: list[Op] | None = None) -> Finding:
    """What the rule says of such steps."""
    found = unused_rows.find(with_labels(rows, ops))
    assert found is not None
    return found


def owned_us(found: Finding) -> int:
    """What it owns of a step, without what follows."""
    return int(found.detail.split(" µs")[0])


def test_logits_of_positions_whose_label_is_ignored() -> None:
    """The head, its gradients and all passes between; not the layer before, nor the sum of the weights' gradients."""
    found = found_in([counted(0.85)])
    assert owned_us(found) == 150 + 75 + 150 + 2 + 150 + 100 + 100
    assert found.saves_ns_per_step == pytest.approx(0.85 * 727_000, rel=0.15)
    assert found.speedup.high / found.speedup.low < 1.6
    assert found.title == "Logits are computed for positions whose label is ignored"
    assert "4,096 positions and 32,000 classes, and the loss ignores 85 % of the positions" in found.detail
    assert found.fix.startswith("Select the positions that have a label before the head")
    assert found.evidence["ignored_share"] == 0.85
    assert found_in([counted(0.5)]).speedup.mid < found.speedup.mid


@pytest.mark.parametrize(
    "rows",
    [None, "damaged", [], [counted(0.3)], [counted(1.0)], [counted(0.9, 4096)], [counted(2.0), 7, None]],
)
def test_labels_that_were_not_counted_or_mostly_count(rows: object) -> None:
    assert unused_rows.find(with_labels(rows)) is None


def test_classes_in_the_middle_padded_or_without_the_last_position() -> None:
    """Logits as [N, C, T], from a head with more classes, over one position more than have a label."""
    turned = [
        Op("aten::bmm", "[[8,512,1024],[8,1024,32064]]", GEMM, 150),
        *loss("[8,32000,511]"),
        Op("aten::bmm", "[[8,32064,512],[8,512,1024]]", GEMM, 100),
        Op("aten::mm", "[[4096,1024],[1024,4096]]", GEMM, 100),
    ]
    assert owned_us(found_in([counted(0.85, 8, 32000, 511)], turned)) == 150 + 75 + 150 + 2 + 100


def test_losses_of_several_sizes_in_a_step() -> None:
    """Each has a share of its own, and one without ignored labels keeps its rows."""
    full = training("[4096,8000]", classes=8000)
    both = [counted(0.85), counted(0.0, ROWS, 8000)]
    halves = [Op(op.name, op.shapes, op.kernel, op.length // 2) for op in training()[1:] + full[1:]]
    assert owned_us(found_in(both, halves)) == 75 + 37 + 75 + 1 + 75 + 50 + 50


@pytest.mark.parametrize(
    "reader",
    [
        Op("aten::_softmax", f"[{TRAINED},[],[]]", SOFTMAX, 5),
        Op("aten::_log_softmax", f"[{TRAINED},[],[]]", SOFTMAX, 5),
        Op("aten::gather", f"[{TRAINED},[],[{ROWS},1],[]]", COPIES, 5),
    ],
)
def test_rows_that_something_else_reads_are_needed(reader: Op) -> None:
    """A student that learns the teacher's distribution at all positions."""
    assert unused_rows.find(with_labels([counted(0.85)], training(TRAINED, reader))) is None


def test_layers_as_wide_as_the_logits_are_not_the_head() -> None:
    """Audio codes: 2,048 of them, and layers of that width. Only the loss's own ops are sure to be of logits."""
    layer = Op("aten::mm", f"[[{ROWS},1024],[1024,{CLASSES}]]", GEMM, 50)
    assert owned_us(found_in([counted(0.85)], training(TRAINED, layer))) == 150 + 2 + 150
