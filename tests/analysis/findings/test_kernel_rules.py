"""Findings about kernels: what fires, what it promises, and what a healthy step does not get."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HALF = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
PLAIN = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize256x128x32"
PLAIN = "cutlass_80_simt_sgemm_256x128_8x4_nn_align1"
TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"
ADD = "void at::native::vectorized_elementwise_kernel<4,float>"
COPY = "void at::native::elementwise_kernel<128,2,copy>"
FLOAT, BF16 = "float,float", "c10::BFloat16,c10::BFloat16"
HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"


def op(at: int, name: str, kernel: str, shapes: str, dtypes: str, kernel_at: int, length: int) -> list[str]:
    """An op that launches one kernel."""
    return [
        f"main  {at}  8  {name}  op  -  {shapes}  {dtypes}",
        f"main  {at + 1}  5  cudaLaunchKernel  runtime  {kernel}  -  -",
        f"stream 7  {kernel_at}  {length}  {kernel}  kernel  -  -  -",
    ]


def found_in(
    *rows: str, count: int = 3, framework: str = "pytorch", workload: str | None = None, **device: object
) -> dict[str, Finding]:
    """The findings of equal steps of 1000 µs, by code; the host launches and then waits for the device."""
    launched = max(int(row.split("  ")[1]) for row in rows if row.startswith("main")) + 20
    rows = (*rows, f"main  {launched}  {995 - launched}  cudaDeviceSynchronize  runtime  -  -  -")
    lines = [HEAD]
    for number in range(count):
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -")
        for row in rows:
            track, begin, rest = row.split("  ", 2)
            lines.append(f"{track}  {1000 * number + int(begin)}  {rest}")
    trace = compute_trace(
        "\n".join(lines),
        {"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, **device},
        framework=framework,
    )
    return {each.code: each for each in apply_rules(replace(case_of(trace), workload=workload))}


def test_products_of_different_sizes_are_judged_one_by_one() -> None:
    """A large and a small product in fp32: each has its own FLOPs (they once had those of the largest)."""
    large = op(10, "aten::mm", PLAIN, "[[4096,2048],[2048,2048]]", FLOAT, 20, 700)
    small = op(30, "aten::mm", PLAIN, "[[1024,2048],[2048,2048]]", FLOAT, 720, 250)
    found = found_in(*large, *small)["fp32-matmul"]
    assert found.evidence["bf16"]["low"] > 5
    assert "TF32" in found.detail
    assert found.evidence["tf32"]["high"] < found.evidence["bf16"]["mid"]


UNPROFILED_NS = 988_980  # of a step of 1 ms, as the replay has it


def test_the_promise_of_plain_products_is_for_either_fix() -> None:
    """TF32 or 16 bits is up to people; once the promise was of 16 bits alone, and jobs with TF32 missed it."""
    found = found_in(*op(10, "aten::mm", PLAIN, "[[4096,2048],[2048,2048]]", FLOAT, 20, 900))["fp32-matmul"]
    tf32, half = found.evidence["tf32"], found.evidence["bf16"]
    assert (found.speedup.low, found.speedup.high) == (tf32["low"], half["high"])
    assert tf32["mid"] < found.speedup.mid < half["mid"]
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.mid + found.saves_ns_per_step == pytest.approx(UNPROFILED_NS, rel=0.001)


ATTENTION = op(
    30,
    "aten::_efficient_attention_forward",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80",
    "[[8,12,1500,64],[8,12,1500,64],[8,12,1500,64]]",
    "float,float,float",
    620,
    340,
)


@pytest.mark.parametrize(("workload", "is_half"), [("inference", True), ("training", False), (None, False)])
def test_inference_is_promised_16_bits_where_tf32_leaves_more(workload: str | None, is_half: bool) -> None:
    """TF32 leaves attention as it is; training may keep its 32 bits, and is promised either."""
    product = op(10, "aten::mm", PLAIN, "[[4096,2048],[2048,2048]]", FLOAT, 20, 600)
    found = found_in(*product, *ATTENTION, workload=workload)["fp32-matmul"]
    tf32, half = found.evidence["tf32"], found.evidence["bf16"]
    assert tf32["high"] < half["low"]
    assert found.speedup.low == (half if is_half else tf32)["low"]
    assert found.speedup.high == half["high"]
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.mid + found.saves_ns_per_step == pytest.approx(UNPROFILED_NS, rel=0.001)


def test_inference_is_promised_either_fix_where_tf32_may_bring_as_much() -> None:
    """A chain of short kernels around the product takes as long with both."""
    rest = op(30, "aten::add", ADD, "[[1024,1024],[1024,1024]]", FLOAT, 520, 440)
    product = op(10, "aten::mm", PLAIN, "[[2048,2048],[2048,2048]]", FLOAT, 20, 500)
    found = found_in(*product, *rest, workload="inference")["fp32-matmul"]
    tf32, half = found.evidence["tf32"], found.evidence["bf16"]
    assert tf32["high"] > half["low"]
    assert found.speedup.mid == pytest.approx((tf32["mid"] * half["mid"]) ** 0.5, abs=0.001)


def test_the_promise_is_for_tf32_where_that_is_the_default() -> None:
    """Plain fp32 was asked for there, as by precision=HIGHEST in JAX."""
    rows = op(10, "dot", PLAIN, "[[4096,2048],[2048,2048]]", FLOAT, 20, 900)
    found = found_in(*rows, framework="tensorflow")["fp32-matmul"]
    tf32 = found.evidence["tf32"]
    assert (found.speedup.low, found.speedup.mid, found.speedup.high) == (
        tf32["low"],
        tf32["mid"],
        tf32["high"],
    )
    assert "bfloat16" in found.detail


def test_tf32_is_slower_on_hopper_where_no_operand_is_k_major() -> None:
    """As for gradients of weights. Ampere's tensor cores read them either way."""

    def gained(layout: str, major: int = 9) -> float:
        rows = op(10, "aten::mm", PLAIN.replace("_nn_", layout), "[[4096,4096],[4096,4096]]", FLOAT, 20, 970)
        return float(found_in(*rows, computeMajor=major)["fp32-matmul"].evidence["tf32"]["mid"])

    assert gained("_tn_") == gained("_nn_") > 1.2 * gained("_nt_")
    assert gained("_nt_", major=8) == gained("_tn_")


def test_tensor_cores_do_not_read_operands_faster() -> None:
    """4 MB of weights and 4 GB of rows: the bytes decide, of which 16 bits halve the number."""
    rows = op(10, "aten::mm", PLAIN, "[[1048576,512],[512,64]]", FLOAT, 20, 970)
    found = found_in(*rows)["fp32-matmul"]
    tf32, half = found.evidence["tf32"], found.evidence["bf16"]
    read_us = 4 * (1048576 * (512 + 64) + 512 * 64) / 4.8e6
    assert tf32["high"] < 1000 / (read_us + 30)
    assert half["mid"] > 1.3 * tf32["mid"]


def test_products_in_tf32_could_run_in_16_bits() -> None:
    rows = op(10, "aten::mm", TF32, "[[8192,8192],[8192,4096]]", FLOAT, 20, 960)
    found = found_in(*rows)["mixed-precision"]
    assert 1.1 < found.speedup.mid < 2.5
    assert found.certainty < 1


def test_small_products_in_16_bits_are_as_fast_as_the_memory() -> None:
    """3 GB of small matrices, as of the scores of attention: they read and write half of it, whatever tensor cores could do."""
    rows = op(10, "aten::bmm", TF32, "[[12288,196,64],[12288,64,196]]", FLOAT, 20, 960)
    found = found_in(*rows)["mixed-precision"]
    moved_us = 4 * 12288 * (2 * 196 * 64 + 196 * 196) / 4.8e6
    assert 1.2 < found.speedup.low < found.speedup.high < 1000 / (moved_us / 2)


def test_a_formula_written_op_by_op_is_unfused() -> None:
    rows = [
        row
        for place in range(9)
        for row in op(
            10 + 20 * place, "aten::mul", ADD, "[[40000000],[]]", "float,double", 20 + 108 * place, 108
        )
    ]
    found = found_in(*rows)["unfused-elementwise"]
    assert found.class_ == "time"
    assert found.speedup.low > 1.5
    assert found.evidence["kernels_per_step"] == 9


def test_kernels_of_another_finding_are_not_counted_among_the_unfused() -> None:
    """A copy between the ops of a formula belongs to the finding about copies, with its bytes."""
    ops = [("aten::mul", "[[40000000],[]]", 108)] * 6
    copy = ("aten::clone", "[[40000000]]", 108)
    found = found_in(*chain(*ops[:3], copy, copy, copy, *ops[3:]))
    mine, copies = found["unfused-elementwise"], found["device-copies"]
    assert mine.share == pytest.approx(0.648, abs=0.03) and copies.share == pytest.approx(0.324, abs=0.03)
    assert mine.evidence["kernels_per_step"] == 6 and " 6 elementwise" in mine.detail
    assert mine.speedup.mid < 1 / (1 - mine.share)  # what the copies take is theirs to save
    whole = found_in(*chain(*ops[:3], *ops[:3], *ops[3:]))["unfused-elementwise"].evidence
    assert mine.evidence["intermediate_bytes_per_step"] < 0.75 * whole["intermediate_bytes_per_step"]


def chain(*ops: tuple[str, str, int]) -> list[str]:
    """Ops (name, shapes, µs) whose kernels follow one another."""
    rows, at = [], 20
    for place, (name, shapes, length) in enumerate(ops):
        rows += op(10 + 20 * place, name, ADD, shapes, FLOAT, at, length)
        at += length
    return rows


def test_layers_between_formulas_may_stay() -> None:
    """A fused op replaces the formula alone; a compiler fuses the layer, too."""

    def promised(name: str) -> Interval:
        formula = [("aten::mul", "[[40000000],[]]", 80)] * 8
        last = (name, "[[40000000],[]]", 300)
        return found_in(*chain(*formula, last))["unfused-elementwise"].speedup

    layer, arithmetic = promised("aten::leaky_relu"), promised("aten::neg")
    assert layer.low < 0.8 * arithmetic.low
    assert layer.high > 0.8 * arithmetic.high


def test_layers_beside_a_formula_that_takes_all_time_stay() -> None:
    """One formula needs no compiler: the layer after it takes as long as before, also at best."""

    def promised(name: str) -> Interval:
        formula = [("aten::mul", "[[40000000],[]]", 100)] * 8
        last = (name, "[[40000000],[]]", 130)
        return found_in(*chain(*formula, last))["unfused-elementwise"].speedup

    layer, arithmetic = promised("aten::leaky_relu"), promised("aten::neg")
    assert layer.high < 1000 / 130
    assert layer.high < 0.7 * arithmetic.high


def test_what_stays_on_chip_must_still_be_computed() -> None:
    """Differences of all pairs: 2 MB enter, and 134 million elements are computed of them, three times."""
    rows = chain(
        ("aten::sub", "[[512,1,512],[1,512,512]]", 300),
        ("aten::pow", "[[512,512,512],[]]", 320),
        ("aten::sum", "[[512,512,512],[]]", 320),
    )
    found = found_in(*rows)["unfused-elementwise"].speedup
    computed_us = 2 * 3 * 512**3 / 67e6  # of the bytes alone, 1 µs is left
    idle_us = 35
    assert found.high < 1.2 * 1000 / (idle_us + computed_us)
    assert found.mid < 1000 / (idle_us + 2 * computed_us)


def test_one_layer_after_a_product_is_healthy() -> None:
    product = op(10, "aten::mm", HALF, "[[8192,8192],[8192,4096]]", BF16, 20, 900)
    layer = op(30, "aten::relu", ADD, "[[8192,4096]]", "c10::BFloat16", 920, 60)
    assert set(found_in(*product, *layer)) <= {"device-sync"}


@pytest.mark.parametrize(("vocabulary", "fires"), [(50257, True), (50304, False)])
def test_sides_that_are_not_multiples_of_8(vocabulary: int, fires: bool) -> None:
    shapes = f"[[2048,1024],[1024,{vocabulary}]]"
    found = found_in(
        *op(10, "aten::mm", "Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16>", shapes, BF16, 20, 970)
    )
    assert ("inefficient-shapes" in found) == fires
    if fires:
        assert "50,257" in found["inefficient-shapes"].detail
        assert found["inefficient-shapes"].speedup.low > 1.5


def test_copies_on_the_device_are_named_by_their_op() -> None:
    product = op(10, "aten::mm", HALF, "[[8192,8192],[8192,2048]]", BF16, 20, 500)
    grown = op(30, "aten::cat", COPY, "[[[400000000],[1000]]]", "TensorList", 520, 450)
    found = found_in(*product, *grown)["device-copies"]
    assert found.evidence["ops"] == ["aten::cat"]
    assert 1.3 < found.speedup.mid < 2.2


@pytest.mark.parametrize(("kernel", "dtypes", "converts"), [(HALF, BF16, False), (PLAIN, FLOAT, True)])
def test_a_model_in_16_bits_is_not_converted_again(kernel: str, dtypes: str, converts: bool) -> None:
    product = op(10, "aten::mm", kernel, "[[8192,8192],[8192,2048]]", dtypes, 20, 500)
    cast = op(30, "aten::_to_copy", COPY, "[[400000000]]", "float", 520, 250)
    grown = op(50, "aten::clone", COPY, "[[400000000]]", "float", 770, 200)
    found = found_in(*product, *cast, *grown)["device-copies"]
    assert ("model.to(torch.bfloat16)" in found.fix) == converts
    assert "mostly in aten::_to_copy." in found.detail


@pytest.mark.parametrize(("workload", "fires"), [(INFERENCE, True), (TRAINING, False)])
def test_casts_are_part_of_mixed_precision_in_training(workload: str, fires: bool) -> None:
    product = op(10, "aten::mm", HALF, "[[8192,8192],[8192,2048]]", BF16, 20, 500)
    cast = op(30, "aten::_to_copy", COPY, "[[400000000]]", "float", 520, 450)
    assert ("device-copies" in found_in(*product, *cast, workload=workload)) == fires


def test_activations_that_are_computed_twice() -> None:
    forward = op(10, "aten::mm", HALF, "[[8192,8192],[8192,4096]]", BF16, 20, 450)
    hook = "autograd  200  300  torch/utils/checkpoint.py(1100): unpack_hook  python  -  -  -"
    again = [
        row.replace("main", "autograd")
        for row in op(210, "aten::mm", HALF, "[[8192,8192],[8192,4096]]", BF16, 470, 450)
    ]
    found = found_in(*forward, hook, *again)["recomputation"]
    assert 1.6 < found.speedup.mid < 2.2


@pytest.mark.parametrize(("rows", "fires"), [(10_000_000, True), (20_000, False)])
def test_tables_of_which_a_batch_touches_a_few_rows(rows: int, fires: bool) -> None:
    """8,192 indices into a table of ten million rows, whose gradient is dense."""
    inputs = f'["","","{rows}","-1","False"]'
    updated, lists = f"[[{rows},64]]", "TensorList,TensorList,TensorList,TensorList"
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs"]
    for number in range(3):
        at = 10_000 * number
        lines += [
            f"main  {at}  10000  ProfilerStep#{number}  annotation  -  -  -  -",
            f"main  {at + 10}  8  aten::embedding_dense_backward  op  -  [[8192,64],[8192],[],[],[]]  float,long  {inputs}",
            f"main  {at + 11}  5  cudaLaunchKernel  runtime  embedding_backward  -  -  -",
            f"stream 7  {at + 20}  1000  embedding_backward  kernel  -  -  -  -",
            f"main  {at + 30}  100  Optimizer.step#Adam.step  annotation  -  -  -  -",
            f"main  {at + 40}  8  aten::_fused_adam_  op  -  [{updated},{updated},{updated},{updated}]  {lists}  -",
            f"main  {at + 41}  5  cudaLaunchKernel  runtime  multi_tensor_apply_kernel  -  -  -",
            f"stream 7  {at + 1020}  8500  multi_tensor_apply_kernel  kernel  -  -  -  -",
            f"main  {at + 140}  9700  cudaDeviceSynchronize  runtime  -  -  -  -",
        ]
    case = case_of(compute_trace("\n".join(lines)))
    found = {each.code: each for each in apply_rules(case)}
    assert ("dense-embedding-gradient" in found) == fires
    if fires:
        assert found["dense-embedding-gradient"].speedup.low > 2


def test_float64_by_default() -> None:
    gemm = "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>"
    product = op(10, "aten::linear", gemm, "[[4096,2048],[2048,2048]]", "double,double", 20, 800)
    single = op(10, "aten::mm", PLAIN, "[[4096,2048],[2048,2048]]", FLOAT, 20, 800)
    found = found_in(*product)["double-precision"]
    assert found.speedup.low < found.speedup.mid < found.speedup.high
    assert found.speedup.high > 1.5
    assert "float32" in found.fix
    assert "double-precision" not in found_in(*single)


@pytest.mark.parametrize(("length", "promised"), [(20, False), (150, True)])
def test_float64_on_purpose_gets_no_promise(length: int, promised: bool) -> None:
    """A solver computes everything in float64; beside float32 it is an exception, and so an accident."""
    gemm = "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>"
    rows = [
        *op(10, "aten::addmm", gemm, "[[2048],[4096,2048],[2048,2048]]", "double,double,double", 20, 700),
        *op(30, "aten::add", ADD, "[[20000000],[]]", "float", 720, length),
    ]
    found = found_in(*rows)["double-precision"]
    assert (found.class_ == "time") == promised
    assert (found.speedup.high > 1) == promised
    assert found.share > 0.6


def attention(mask: str, product: str = HALF, dtypes: str = BF16) -> list[str]:
    """Attention written out: 2048 tokens, 64 heads in all; a product, a mask, softmax and a product."""
    scores = "[64,2048,2048]"
    return [
        *op(10, "aten::bmm", product, "[[64,2048,64],[64,64,2048]]", dtypes, 20, 100),
        *op(30, "aten::masked_fill", ADD, f"[{scores},{mask},[]]", "c10::BFloat16,bool", 120, 350),
        *op(50, "aten::_softmax", ADD, f"[{scores},[],[]]", "c10::BFloat16", 470, 400),
        *op(70, "aten::bmm", product, f"[{scores},[64,2048,64]]", dtypes, 870, 100),
    ]


def test_fused_attention_skips_what_a_square_mask_leaves_out() -> None:
    """A mask that all heads share lies along the diagonal; one of a sample's padding does not."""
    causal = found_in(*attention("[2048,2048]"))["unfused-attention"]
    padding = found_in(*attention("[64,1,2048]"))["unfused-attention"]
    assert padding.left_ns_per_step is not None
    assert causal.left_ns_per_step is not None
    assert causal.left_ns_per_step.mid < 0.75 * padding.left_ns_per_step.mid
    assert causal.speedup.low > padding.speedup.low > 2


def test_fused_attention_stays_in_the_format_of_its_products() -> None:
    """In TF32 only a kernel for earlier tensor cores is there: 69 GFLOP take 0.4 to 0.9 ms, in bf16 0.15 to 0.25."""
    half = found_in(*attention("[64,1,2048]"))["unfused-attention"]
    tf32 = found_in(*attention("[64,1,2048]", TF32, FLOAT)).get("unfused-attention")
    assert tf32 is None or tf32.speedup.high < half.speedup.low


def test_attention_in_float64_has_no_fused_kernel() -> None:
    """What comes first is another precision; then there is one."""
    double = "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>"
    found = found_in(*attention("[64,1,2048]", double, "double,double"))
    assert "unfused-attention" not in found
    assert "double-precision" in found


def test_a_sort_that_takes_much_of_the_step_is_named_without_a_promise() -> None:
    """Of 50 thousand numbers for each of 64 sequences: 13 MB that are read and written in a few microseconds."""
    kernel = "void at::native::(anonymous namespace)::segmented_sort_pairs_kernel"
    rows = [
        *op(10, "aten::mm", HALF, "[[24576,512],[512,512]]", BF16, 20, 500),
        *op(30, "aten::sort", kernel, "[[64,50257],[],[],[]]", "float", 520, 450),
    ]
    found = found_in(*rows)["slow-op"]
    assert (found.class_, found.speedup.mid) == ("advice", 1.0)
    assert "aten::sort" in found.detail
    assert "topk" in found.fix


@pytest.mark.parametrize(("kernel", "of_product"), [(PLAIN, "fp32-matmul"), (TF32, "mixed-precision")])
def test_products_inside_of_a_decomposition_belong_to_it(kernel: str, of_product: str) -> None:
    """The library chooses their precision; the fix is to factor once."""
    shapes = "[[4096,4096],[4096,4096]]"
    assert of_product in found_in(*op(10, "aten::mm", kernel, shapes, "float,float", 20, 900))
    found = found_in(*op(10, "aten::linalg_lu_factor_ex", kernel, shapes, "float,float", 20, 900))
    assert of_product not in found
    assert found["slow-op"].class_ == "advice"
    assert "torch.linalg.lu_factor" in found["slow-op"].fix
    assert "cholesky_solve(y" not in found["slow-op"].fix


def test_an_inverse_is_advised_to_become_a_solve() -> None:
    """torch.linalg.inv solves with the identity: its kernels are of other ops inside of it."""
    shapes = "[[4096,4096],[4096,4096]]"
    outer = ["main  9  90  aten::linalg_inv_ex  op  -  -  -"]
    rows = op(10, "aten::linalg_lu_factor_ex", PLAIN, shapes, "float,float", 20, 900)
    found = found_in(*outer, *rows)["slow-op"]
    assert found.class_ == "advice" and "torch.cholesky_solve(y, L)" in found.fix


def test_the_softmax_of_a_loss_is_no_attention() -> None:
    """As of CTC, over as many classes as the model has features: the tensors between the layers are as large."""
    rows = [
        *op(10, "aten::mm", HALF, "[[24576,512],[512,512]]", BF16, 20, 300),
        *op(30, "aten::add", ADD, "[[32,768,512],[32,768,512],[]]", "c10::BFloat16", 320, 300),
        *op(50, "aten::_log_softmax", ADD, "[[32,768,512],[],[]]", "c10::BFloat16", 620, 350),
    ]
    assert "unfused-attention" not in found_in(*rows)


def test_copies_of_the_operands_go_with_the_products() -> None:
    """A product of views copies them first, inside its own op."""
    inside = [
        "main  10  40  aten::matmul  op  -  [[64,2048,64],[64,64,2048]]  c10::BFloat16,c10::BFloat16",
        *op(12, "aten::copy_", COPY, "[[64,64,2048],[64,64,2048],[]]", BF16, 20, 300),
        *op(30, "aten::bmm", HALF, "[[64,2048,64],[64,64,2048]]", BF16, 320, 100),
    ]
    softmax = op(60, "aten::_softmax", ADD, "[[64,2048,2048],[],[]]", "c10::BFloat16", 420, 550)
    found = found_in(*inside, *softmax)["unfused-attention"]
    assert found.share > 0.9


def test_views_of_the_scores_and_their_gradients_go_with_attention() -> None:
    """They have no kernel, but the host dispatches them: after the change it decides how long the step is."""

    def gained(view: str) -> float:
        node = "autograd::engine::evaluate_function: ViewBackward0"
        rows = [
            f"main  100  400  {node}  op  -  -  -",
            f"main  300  150  aten::view  op  -  [{view},[]]  c10::BFloat16",
        ]
        return found_in(*attention("[64,1,2048]"), *rows)["unfused-attention"].speedup.mid

    assert gained("[64,2048,2048]") > 1.2 * gained("[64,2048,64]")


def test_layers_that_are_one_op_each_are_advice_without_a_promise() -> None:
    """A sum and two activations of the library in a row: a compiler would fuse them, but nothing is wrong."""
    names = ("aten::add", "aten::relu", "aten::silu")
    rows = [
        row
        for place, name in enumerate(names)
        for row in op(10 + 20 * place, name, ADD, "[[130000000]]", "float", 20 + 320 * place, 320)
    ]
    found = found_in(*rows)["unfused-elementwise"]
    assert (found.class_, found.speedup.mid) == ("advice", 1.0)
    assert "torch.compile" in found.fix


def test_a_tensor_that_a_formula_reads_again_does_not_enter_again() -> None:
    """Nine ops, one of which reads the input a second time: at best 400 MB in and out, 0.17 ms at 60 % of 4.8 TB/s."""
    rows = [
        row
        for place in range(9)
        for row in op(
            10 + 20 * place,
            "aten::add" if place == 5 else "aten::mul",
            ADD,
            "[[50000000],[50000000]]" if place == 5 else "[[50000000],[]]",
            "float,float" if place == 5 else "float,double",
            20 + 106 * place,
            106,
        )
    ]
    found = found_in(*rows)["unfused-elementwise"]
    assert found.class_ == "time"
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.low < 300_000 < found.left_ns_per_step.high


def test_copies_inside_a_graph_are_known_by_their_name() -> None:
    """A cache that is not donated is copied whole, by a node of the graph that the program is launched as."""
    copied = op(10, "aten::mm", "memcpy128", "[[64,64],[64,64]]", BF16, 20, 600)
    product = op(30, "aten::mm", HALF, "[[8192,8192],[8192,4096]]", BF16, 620, 370)
    found = found_in(*copied, *product)["device-copies"]
    assert 2 < found.speedup.mid < 3
