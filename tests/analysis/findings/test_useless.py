"""Work that the result does not need: gradients, zeros, padding, one-hot products, and what only training needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import without_calls
from stepscope.analysis.findings.rules.kernels import masked_attention
from stepscope.analysis.findings.rules.useless import (
    dropout_in_inference,
    grad_in_inference,
    one_hot_product,
    padding,
    recomputed_prefix,
    recomputed_weights,
    repeated_rows,
    useless_backward,
)
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.trace.schema import TABLES
from tests.analysis.findings.op_steps import GEMM, Op, case
from tests.builders.cases import case_of

SINGLE = "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize256x128x32"
FLASH = "fmha_cutlassF_bf16_aligned_64x128_rf_sm80"
DROP = "void at::native::fused_dropout_kernel_vec"
ENGINE = "autograd::engine::evaluate_function:"


def gradient(shape: str) -> Op:
    """The node that adds a gradient up."""
    node = Op("torch::autograd::AccumulateGrad", f"[{shape}]", track="autograd")
    return Op(f"{ENGINE} torch::autograd::AccumulateGrad", track="autograd", inside=(node,))


def backward(length: int) -> Op:
    product = Op("aten::mm", "[[4096,4096],[4096,4096]]", GEMM, length, "autograd")
    return Op(f"{ENGINE} MmBackward0", track="autograd", sequence="1", inside=(product,))


def training(updated: str) -> list[Op]:
    """A forward product, a backward pass through the head and then the rest, and an optimizer step."""
    update = Op("aten::_fused_adamw_", updated, "multi_tensor_apply_kernel_adam", 10)
    return [
        Op("aten::mm", "[[4096,4096],[4096,4096]]", GEMM, 200, sequence="1"),
        backward(100),
        gradient("[1000,512]"),
        backward(400),
        gradient("[512,4096]"),
        Op("Optimizer.step#AdamW.step", kind="annotation", dtypes="-", inside=(update,)),
    ]


def test_gradients_of_what_the_optimizer_does_not_update() -> None:
    found = useless_backward.find(case(*[training("[[[1000,512]]]")] * 3))
    assert found is not None
    assert found.speedup.low > 1.3
    assert "requires_grad_(False)" in found.fix


def test_what_the_engine_does_between_gradients_goes_with_them() -> None:
    """Its thread has no events then; the call of backward on the main thread stands for it."""
    first, head, *rest, last = training("[[[1000,512]]]")[1:]
    call = Op("torch/_tensor.py(576): backward", kind="python", dtypes="-", inside=(first, head, *rest))
    made = case(*[[training("[]")[0], call, last]] * 3)
    assert useless_backward.find(made) is not None
    frames = made.trace.events.filter(pl.col("kind") == "python")["id"]
    is_engine = pl.col("event").is_in(frames.implode()) & (pl.col("cause") == "dispatch")
    left = made.changes["useless-backward"].largest
    gone = left.items.filter((pl.col("device_ns") == 0) & (made.plan.items["device_ns"] > 0))["item"]
    between = is_engine & pl.col("item").is_in(gone.implode())
    assert made.plan.host.filter(between)["ns"].sum() > 0
    assert left.host.filter(between)["ns"].sum() == 0
    assert left.host.filter(is_engine)["ns"].sum() > 0


@pytest.mark.parametrize("updated", ["[[[1000,512],[512,4096]]]", "[[],[]]", "damaged"])
def test_gradients_that_are_used_or_whose_use_is_not_known(updated: str) -> None:
    assert useless_backward.find(case(*[training(updated)] * 3)) is None


LEFT_OUT = "[[],[]]"  # what PyTorch writes of lists of more than 30 tensors


def test_the_blocks_of_an_optimizer_say_which_gradients_are_its_own() -> None:
    """The first gradient has 8 chunks of 65,536 elements, the last has 32."""
    found = useless_backward.find(case(*[training(LEFT_OUT)] * 3, blocks=8))
    assert found is not None
    assert found.speedup.low > 1.3


@pytest.mark.parametrize("blocks", [7, 9, 32, 40])
def test_blocks_of_all_gradients_of_the_last_ones_or_of_others(blocks: int) -> None:
    assert useless_backward.find(case(*[training(LEFT_OUT)] * 3, blocks=blocks)) is None


def test_blocks_that_the_first_gradients_have_as_well_as_the_last() -> None:
    """A generator's step goes through the discriminator first: its gradients are those that nothing uses."""
    *before, optimizer = training(LEFT_OUT)
    made = case(*[[*before, gradient("[4096,128]"), optimizer]] * 3, blocks=8)
    assert useless_backward.find(made) is None


def test_blocks_of_parts_that_other_processes_update() -> None:
    collective = Op("nccl:all_gather", kernel="ncclDevKernel_AllGather_RING_LL", length=5)
    made = case(*[[collective, *training(LEFT_OUT)]] * 3, blocks=8)
    assert useless_backward.find(made) is None


def product(shapes: str, length: int = 400, kernel: str = SINGLE) -> Op:
    return Op("aten::mm", shapes, kernel, length, dtypes="float,float")


def lookup(classes: int, used: str = "aten::mm") -> list[Op]:
    ones = Op("aten::scatter_", f"[[4096,{classes}],[],[4096,1],[]]", "scatter_kernel", 50)
    return [
        Op("aten::one_hot", "[[4096],[]]", inside=(ones,)),
        Op(used, f"[[4096,{classes}],[{classes},512]]", GEMM, 500),
    ]


def test_a_one_hot_matrix_times_a_table() -> None:
    found = one_hot_product.find(case(*[lookup(32000)] * 3))
    assert found is not None
    assert found.evidence["classes"] == 32000
    assert found.speedup.mid > 1.5


def test_few_classes_and_one_hot_labels_are_no_lookup() -> None:
    assert one_hot_product.find(case(*[lookup(16)] * 3)) is None
    labels = [lookup(32000)[0], product("[[4096,512],[512,32000]]")]
    assert one_hot_product.find(case(*[labels] * 3)) is None


def scattered(
    value: str = "1.", index: str = "[4096,1]", zeros: str = "aten::zero_", between: tuple[Op, ...] = ()
) -> list[Op]:
    """A matrix of [4096, 8000] that is written by hand, behind distances of its shape, and the lookup."""
    whole = "[4096,8000]"
    inputs = f'["","1","","{value}"]'
    return [
        Op("aten::mm", "[[4096,64],[64,8000]]", GEMM, 50),
        Op("aten::add", f"[{whole},{whole},[]]", "add_kernel", 100),
        Op("aten::argmin", f"[{whole},[],[]]", "reduce_kernel", 100),
        Op(zeros, f"[{whole}]", "fill_kernel", 40),
        Op("aten::scatter_", f"[{whole},[],{index},[]]", "scatter_kernel", 10, inputs=inputs),
        *between,
        Op("aten::mm", f"[{whole},[8000,64]]", GEMM, 400),
    ]


def test_ones_that_are_scattered_into_zeros_look_up_too() -> None:
    """Of 700 µs, 450 make the matrix and multiply; distances of the same shape stay."""
    made = case(*[scattered()] * 3)
    found = one_hot_product.find(made)
    assert found is not None
    assert found.evidence["classes"] == 8000
    left = made.changes["one-hot-product"].largest.items
    names = made.trace.events["name"].cast(pl.String).gather(left["event"].drop_nulls())
    kept = set(names.filter(left.filter(pl.col("event").is_not_null())["device_ns"] >= 10_000))
    assert {"add_kernel", "reduce_kernel"} <= kept and not {"fill_kernel", "scatter_kernel"} & kept


@pytest.mark.parametrize(
    "other",
    [
        {"value": "0.9"},  # smoothed labels
        {"index": "[4096,4]"},
        {"zeros": "aten::normal_"},
        {"between": (Op("aten::mm", "[[4096,64],[64,64]]", GEMM, 5),)},
        {"between": (Op("aten::add", "[[4096,8000],[4096,8000],[]]", "add_kernel", 50),)},  # gumbel_softmax
    ],
)
def test_what_else_is_scattered_is_no_lookup(other: dict[str, Any]) -> None:
    assert one_hot_product.find(case(*[scattered(**other)] * 3)) is None


def test_a_matrix_that_is_read_again_may_still_be_made() -> None:
    """As for the share of each class, whose mean is taken."""
    made = case(*[[*scattered(), Op("aten::mean", "[[4096,8000],[],[],[]]", "reduce_kernel", 20)]] * 3)
    assert one_hot_product.find(made) is not None
    change = made.changes["one-hot-product"]
    for plan, is_left in ((change.smallest, True), (change.largest, False)):
        items = plan.items.filter(pl.col("event").is_not_null())
        names = made.trace.events["name"].cast(pl.String).gather(items["event"])
        assert (items["device_ns"].filter(names == "fill_kernel") == 40_000).all() == is_left


def attention(mask: str, length: int = 512, strides: str = "") -> Op:
    qkv = f"[32,8,{length},64]"
    inner = Op("aten::_efficient_attention_forward", f"[{qkv},{qkv},{qkv}]", FLASH, 500)
    shapes = f"[{qkv},{qkv},{qkv},{mask},[],[],[],[]]"
    known = f"[[],[],[],{strides},[],[],[],[]]" if strides else "-"
    return Op("aten::scaled_dot_product_attention", shapes, inside=(inner,), strides=known)


def test_a_mask_per_sample_and_one_length_is_padding() -> None:
    found = padding.find(case(*[[attention("[32,1,1,512]")]] * 4))
    assert found is not None
    assert found.evidence["length"] == 512
    assert 1.2 < found.speedup.mid < 4


def test_batches_of_their_own_lengths_and_shared_masks_are_not_padded() -> None:
    grown = [[attention(f"[32,1,1,{length}]", length)] for length in (512, 480, 300, 400)]
    assert padding.find(case(*grown)) is None
    assert padding.find(case(*[[attention("[512,512]")]] * 4)) is None


def test_a_mask_that_all_samples_share_need_not_be_read() -> None:
    found = masked_attention.find(case(*[[attention("[512,512]")]] * 3))
    assert found is not None
    assert found.speedup.mid > 1.2
    for mask in ("[]", "[32,1,1,512]", "[32,8,512,512]"):
        assert masked_attention.find(case(*[[attention(mask)]] * 3)) is None


def test_a_causal_mask_that_is_expanded_to_the_samples_is_one_mask() -> None:
    shared, own = "[0,262144,512,1]", "[262144,262144,512,1]"
    for strides, rule, other in ((shared, masked_attention, padding), (own, padding, masked_attention)):
        made = case(*[[attention("[32,1,512,512]", strides=strides)]] * 4)
        assert rule.find(made) is not None
        assert other.find(made) is None


@pytest.mark.parametrize(
    ("sides", "is_padded"),
    [
        ("[[32,512,1],[32,1,512]]", False),
        ("[[32,1,1,512],[32,1,512,1]]", False),
        ("[[512,1],[1,512]]", True),  # a mask of positions, which all samples share
        ("[[32,512],[]]", True),  # the id of the padding
    ],
)
def test_documents_packed_into_one_sequence_are_not_padded(sides: str, is_padded: bool) -> None:
    """A mask per sample that lets positions attend to their own document."""
    compared = Op("aten::eq", sides, "void at::native::compare_kernel", 2)
    made = case(*[[compared, attention("[32,1,512,512]")]] * 4)
    assert (padding.find(made) is not None) is is_padded


def inference(sequence: str) -> list[Op]:
    """Many short kernels, so that the host decides; each op makes a node from this number on, if there is one."""
    numbers = [str(int(sequence) + place) if sequence.isdecimal() else sequence for place in range(80)]
    return [Op("aten::mm", "[[64,64],[64,64]]", GEMM, 2, sequence=number) for number in numbers]


def test_inference_that_autograd_records() -> None:
    found = grad_in_inference.find(case(*[inference("1")] * 3, workload=INFERENCE))
    assert found is not None
    assert 1 < found.speedup.mid < 1.4
    assert "inference_mode" in found.fix
    assert grad_in_inference.find(case(*[inference("-")] * 3, workload=INFERENCE)) is None
    assert grad_in_inference.find(case(*[inference("1")] * 3, workload=TRAINING)) is None


def test_frozen_weights_keep_no_graph() -> None:
    """Ops are numbered wherever gradients are on, but only a node takes a number."""
    frozen = [Op("aten::mm", "[[64,64],[64,64]]", GEMM, 2, sequence="7")] * 80
    assert grad_in_inference.find(case(*[frozen] * 3, workload=INFERENCE)) is None


def test_what_is_outside_of_a_captured_graph_says_nothing_of_the_model() -> None:
    """Ops under no_grad whose kernels go into the graph, behind a few that launch."""
    for is_found in (True, False):
        views = [
            Op("aten::view", "[[64,64]]", sequence=str(100 + place) if is_found else "-")
            for place in range(60)
        ]
        ops = [*inference("1")[:40], *views]
        assert (grad_in_inference.find(case(*[ops] * 3, workload=INFERENCE)) is not None) is is_found


def test_dropout_in_inference() -> None:
    ops = [Op("aten::native_dropout", "[[4096,4096]]", DROP, 300), Op("aten::mm", "[]", GEMM, 300)]
    found = dropout_in_inference.find(case(*[ops] * 3, workload=INFERENCE))
    assert found is not None
    assert found.speedup.mid > 1.2
    assert dropout_in_inference.find(case(*[ops] * 3, workload=TRAINING)) is None


def test_a_prefix_that_is_computed_again_for_every_token() -> None:
    def decoding(tokens: Sequence[int]) -> Case:
        by_step = [[Op("aten::mm", f"[[{8 * each},1024],[1024,4096]]", GEMM, 400)] for each in tokens]
        return case(*by_step, workload=INFERENCE)

    found = recomputed_prefix.find(decoding((500, 501, 502, 503)))
    assert found is not None
    assert found.evidence["tokens"] == pytest.approx(501, abs=1)
    assert found.speedup.mid > 1.2
    two_prompts = (*range(500, 508), *range(120, 128))
    found = recomputed_prefix.find(decoding(two_prompts))
    assert found is not None
    assert found.evidence["tokens"] == pytest.approx(313, abs=2)
    for by_requests in ((128, 1, 1, 300, 1, 1, 64, 1), (128, 136, 96, 97, 98, 64, 65)):
        assert recomputed_prefix.find(decoding(by_requests)) is None
    assert recomputed_prefix.find(decoding((500, 500, 500, 500))) is None
    assert recomputed_prefix.find(decoding((500, 730, 120, 64))) is None
    assert recomputed_prefix.find(decoding((1, 2, 3, 4))) is None


def messages(*between: Op, table: int = 1000, gathers: str = "aten::index_select") -> list[Op]:
    """A layer on 32,000 rows that are gathered from a table."""
    return [
        Op(gathers, f"[[{table},512],[],[32000]]", "void at::native::indexSelectLargeIndex", 50),
        *between,
        Op("aten::linear", "[[32000,512],[512,512],[512]]", GEMM, 400),
        Op("aten::relu", "[[32000,512]]", "void at::native::vectorized_elementwise_kernel", 100),
        Op("aten::linear", "[[32000,512],[512,512],[512]]", GEMM, 300),
    ]


@pytest.mark.parametrize("gathers", ["aten::index_select", "aten::index", "aten::embedding"])
def test_a_layer_on_gathered_rows(gathers: str) -> None:
    found = repeated_rows.find(case(*[messages(gathers=gathers)] * 3))
    assert found is not None
    assert (found.evidence["rows"], found.evidence["table"]) == (32000, 1000)
    assert found.speedup.low > 2


def test_rows_that_differ_are_no_repetition() -> None:
    positions = Op("aten::add", "[[32000,512],[32000,512],[]]")
    assert repeated_rows.find(case(*[messages(positions)] * 3)) is None
    assert repeated_rows.find(case(*[messages(table=20000)] * 3)) is None
    assert repeated_rows.find(case(*[messages()[2:]] * 3)) is None


def pooled(sums: int) -> list[Op]:
    """A layer on gathered rows of data, the largest of each four of which is used, and the sums of its gradients."""
    scatter = Op(
        "aten::index_add_", "[[1000,512],[],[32000],[32000,512],[]]", "void index_add", 200, "autograd"
    )
    back = Op("aten::mm", "[[512,32000],[32000,512]]", GEMM, 200, "autograd")
    return [
        Op("aten::index_select", "[[1000,512],[],[32000]]", "void at::native::gather", 100),
        Op("aten::linear", "[[32000,512],[512,512],[512]]", GEMM, 400),
        Op("aten::amax", "[[8000,4,512],[],[]]", "void at::native::reduce_kernel", 300),
        Op(f"{ENGINE} AddmmBackward0", track="autograd", sequence="1", inside=(back,)),
        *[Op(f"{ENGINE} IndexSelectBackward0", track="autograd", sequence="2", inside=(scatter,))] * sums,
    ]


def linked(made: Case) -> Case:
    """What the engine runs belongs to some op of the forward pass."""
    events = made.trace.events
    nodes = events.filter(pl.col("name").cast(pl.String).str.starts_with(ENGINE))["id"]
    links = pl.DataFrame(
        {"from": nodes * 0 + 1, "to": nodes, "why": "forward-backward"}, schema=TABLES["links"]
    )
    tables = {**made.trace.tables, "links": pl.concat([made.trace.links, links])}
    return case_of(made.trace.over(tables, made.trace.cold))


def test_what_combines_gathered_rows_stays() -> None:
    found = repeated_rows.find(case(*[pooled(sums=1)] * 3))
    assert found is not None
    assert [one["name"] for one in found.evidence["names"]] == [GEMM]


def test_what_a_layer_makes_of_data_has_a_gradient_to_sum_up() -> None:
    """Of two layers on the rows of two gathers, only the second has a table with a gradient: the fix needs another sum."""
    first, second = pooled(sums=0), pooled(sums=1)
    one, two = (repeated_rows.find(linked(case(*[steps] * 3))) for steps in (first + second, second + second))
    assert one is not None
    assert two is not None
    assert one.saves_ns_per_step < two.saves_ns_per_step - 100_000


def gated(values: int = 1, meet: bool = True) -> list[Op]:
    """Layers on the rows of two gathers, which meet behind them, and the gradients of the layers and the gathers."""
    wide, kernel = "[32000,256]", "void at::native::elementwise_kernel"
    inner = Op("aten::gather", f"[[4000,256],[],{wide},[],{wide}]", "void at::native::gather", 100)
    gathered = Op("aten::index_select", "[[4000,256],[],[32000]]", inside=(inner,))
    layer = Op("aten::linear", f"[{wide},[256,256],[256]]", GEMM, 200)
    back = Op("aten::mm", f"[{wide},[256,256]]", GEMM, 200, "autograd")
    scatter = Op("aten::index_add_", f"[[4000,256],[],[32000],{wide},[]]", "void index_add", 100, "autograd")
    layers = 1 + values
    return [
        gathered,
        gathered,
        *[layer] * layers,
        Op("aten::mul", f"[{wide},{wide if meet else []}]", kernel, 300),
        *[Op(f"{ENGINE} AddmmBackward0", track="autograd", sequence="1", inside=(back,))] * layers,
        *[Op(f"{ENGINE} IndexSelectBackward0", track="autograd", sequence="2", inside=(scatter,))] * 2,
    ]


def test_what_rows_of_two_gathers_do_together_stays() -> None:
    together, apart = (repeated_rows.find(case(*[gated(meet=meet)] * 3)) for meet in (True, False))
    assert together is not None
    assert apart is not None
    # The products go, and only if no rows meet, the elementwise kernel goes as well. Gradients run beside the next
    # step's layers and share their time.
    assert [one["name"] for one in together.evidence["names"]] == [GEMM]
    assert {one["name"]: one["ns_per_step"] for one in apart.evidence["names"]} == {
        GEMM: together.evidence["names"][0]["ns_per_step"],
        "void at::native::elementwise_kernel": 300_000,
    }
    assert together.speedup.high < apart.speedup.high


def test_several_layers_on_one_gather_need_as_many_gathers() -> None:
    """Of the products an eighth to a quarter stays, but 400 µs of gathers and scatters become 600."""
    found = repeated_rows.find(case(*[gated(values=2)] * 3))
    assert found is not None
    assert found.speedup.mid < 1 / (1 - 0.75 * found.share)
    assert found.speedup.low > 1


def edges(rows: int = 32000, joined: str = "[[[32000,256],[32000,256]],[]]") -> list[Op]:
    """A layer on the joined rows of two gathers, and its gradient."""
    gathered = Op("aten::index_select", f"[[4000,256],[],[{rows}]]", "void at::native::gather", 40)
    back = Op("aten::mm", "[[32000,256],[256,512]]", GEMM, 200, "autograd")
    return [
        gathered,
        gathered,
        Op("aten::cat", joined, "void at::native::CatArrayBatchedCopy", 100),
        Op("aten::addmm", "[[256],[32000,512],[512,256],[],[]]", GEMM, 300),
        Op(f"{ENGINE} AddmmBackward0", track="autograd", sequence="1", inside=(back,)),
    ]


def test_a_layer_on_joined_gathered_rows() -> None:
    """Both products shrink to an eighth, at most to a quarter; of the concatenation three quarters are left."""
    found = repeated_rows.find(case(*[edges()] * 3))
    assert found is not None
    assert found.evidence == {"names": found.evidence["names"], "rows": 32000, "table": 4000, "parts": 2}
    assert found.share == pytest.approx(0.6, abs=0.02)
    assert 2 < found.speedup.low < 2.5 < found.speedup.high < 4.3
    assert "split" in found.fix


@pytest.mark.parametrize(
    "joined",
    [
        "[[[32000,128],[32000,384]],[]]",  # columns that no gather has
        "[[[16000,512],[16000,512]],[]]",  # of other rows
    ],
)
def test_joined_rows_that_were_not_gathered(joined: str) -> None:
    assert repeated_rows.find(case(*[edges(joined=joined)] * 3)) is None


@pytest.mark.parametrize(
    ("workload", "name", "fires"),
    [
        (INFERENCE, "aten::_weight_norm", True),
        (TRAINING, "aten::_weight_norm", False),
        (INFERENCE, "aten::linalg_norm", False),
    ],
)
def test_weights_that_are_computed_in_every_call(workload: str, name: str, fires: bool) -> None:
    norm = Op(name, "[[512,512,3],[512,1,1],[]]", "void at::native::weight_norm_fwd_first_dim_kernel", 300)
    layer = Op("aten::conv1d", "[[1,512,4096],[512,512,3],[512]]", GEMM, 300)
    found = recomputed_weights.find(case(*[[norm, layer]] * 3, workload=workload))
    assert (found is not None) == fires
    if found is not None:
        assert found.share == pytest.approx(0.3, abs=0.02)
        assert 1.2 < found.speedup.mid < 1.5
        assert "remove_parametrizations" in found.fix


def test_python_around_computed_weights_goes_with_them() -> None:
    norm = Op("aten::_weight_norm", "[[512,512,3],[512,1,1],[]]", "weight_norm_fwd_first_dim_kernel", 2)
    getter = "torch/nn/utils/parametrize.py(400):get_parametrized"
    modules = Op("nn.Module:ParametrizationList_0", kind="python", inside=(norm,))
    weight = Op(getter, kind="python", inside=(Op("torch/_jit_internal.py(103):is", kind="python"), modules))
    layer = Op("aten::conv1d", "[[1,512,4096],[512,512,3],[512]]", GEMM, 3)
    calls = Op("nn.Module:ParametrizedConv1d_0", kind="python", inside=(weight, layer))
    found = case(*[[calls, calls]] * 3, workload=INFERENCE)
    spans = found.trace.events.filter(pl.col("name").cast(pl.String) == getter).select(
        "track", "start_ns", "dur_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    left = without_calls(found.plan, found.trace, spans)
    assert len(spans) == 6
    assert int(found.plan.host["recorded_ns"].sum()) == int(left.host["recorded_ns"].sum()) + int(
        spans["dur_ns"].sum()
    )
