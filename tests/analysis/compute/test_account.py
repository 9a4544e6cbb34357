"""Ideal time and losses of small traces: each reason, and sums to the nanosecond."""

from __future__ import annotations

import polars as pl
import pytest

from tests.analysis.compute.traces import by_reason, computed

# On an H200: 67 TFLOP/s in fp32, 989.4 in bf16, 4.8 TB/s.
STEP = """
    track     start   dur  name              kind        launches  shapes                       dtypes
    main          0  1000  ProfilerStep#0    annotation  -         -                            -
"""
GEMM = "ampere_sgemm_128x64_tn"
BF16 = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
ADD = "void at::native::vectorized_elementwise_kernel<4,float>"


def step(*rows: str) -> str:
    """One step of 1000 µs with these rows."""
    return STEP + "\n".join(rows)


def op(at: int, name: str, kernel: str, shapes: str, dtypes: str, kernel_at: int, length: int) -> list[str]:
    """An op that launches one kernel."""
    return [
        f"main  {at}  8  {name}  op  -  {shapes}  {dtypes}",
        f"main  {at + 1}  5  cudaLaunchKernel  runtime  {kernel}  -  -",
        f"stream 7  {kernel_at}  {length}  {kernel}  kernel  -  -  -",
    ]


def test_without_kernels_the_tables_are_the_same() -> None:
    full = computed(step(*op(10, "aten::add", ADD, "[[4096],[4096]]", "float,float", 50, 200)))
    empty = computed(step("main  10  8  aten::add  op  -  [[4096],[4096]]  float,float"))
    for name in ("kernels", "parts", "chains", "repeated"):
        found = getattr(empty, name)
        assert found.is_empty() and found.schema == getattr(full, name).schema


def test_a_product_below_its_peak() -> None:
    """2·4096³ FLOPs in bf16 need 139 µs at 989.4 TFLOP/s."""
    found = computed(step(*op(10, "aten::mm", BF16, "[[4096,4096],[4096,4096]]", "c10::BFloat16,c10::BFloat16", 50, 200)))  # fmt: skip
    row = found.kernels.row(0, named=True)
    assert (row["class"], row["bound"], row["reason"]) == ("matmul", "flops", "matmul")
    assert row["flops"] == 2 * 4096**3
    ideal = int(2 * 4096**3 / 989.4e12 * 1e9)
    assert by_reason(found) == {"ideal": ideal, "matmul": 200_000 - ideal}


def test_memory_bandwidth_bounds_elementwise_work() -> None:
    """Two tensors of 400 MB at 4.8 TB/s take 166.7 µs."""
    found = computed(step(*op(10, "aten::relu", ADD, "[[100000000]]", "float", 50, 300)))
    assert found.kernels["bound"].to_list() == ["hbm"]
    assert found.kernels["bytes"].to_list() == [800_000_000]
    assert by_reason(found) == {"ideal": 166_666, "memory": 300_000 - 166_666}


@pytest.mark.parametrize(("layers", "bound"), [(5, "hbm"), (2, "l2")])
def test_weights_of_inference_come_from_memory_if_a_step_reads_more_than_the_cache_holds(
    layers: int, bound: str
) -> None:
    """Each takes 16 of the 50 MiB; what the layer before has written is in the cache."""
    rows = [
        row
        for at in range(10, 10 + 100 * layers, 100)
        for row in op(at, "aten::mm", BF16, "[[8,4096],[4096,2048]]" if at % 200 == 10 else "[[8,2048],[2048,4096]]", "c10::BFloat16,c10::BFloat16", at + 40, 20)
    ]  # fmt: skip
    assert computed(step(*rows)).kernels["bound"].unique().to_list() == [bound]


def test_weights_that_a_step_writes_may_be_in_the_cache() -> None:
    """An optimizer updates them: the sizes are written in the step, too."""
    shapes, types = "[[8,4096],[4096,2048]]", "c10::BFloat16,c10::BFloat16"
    rows = [row for at in range(10, 510, 100) for row in op(at, "aten::mm", BF16, shapes, types, at + 40, 20)]
    update = op(600, "aten::add_", ADD, "[[4096,2048],[4096,2048],[]]", f"{types},Scalar", 650, 20)
    bounds = computed(step(*rows, *update)).kernels.filter(pl.col("class") == "matmul")["bound"]
    assert bounds.unique().to_list() == ["l2"]


def test_what_fits_into_half_of_the_cache_is_bound_by_the_cache() -> None:
    found = computed(step(*op(10, "aten::relu", ADD, "[[1000000]]", "float", 50, 10)))
    assert found.kernels["bound"].to_list() == ["l2"]
    assert found.kernels["least_ns"][0] == pytest.approx(8e6 / 10138e9 * 1e9)


def test_a_short_kernel_is_small() -> None:
    found = computed(step(*op(10, "aten::relu", ADD, "[[1000]]", "float", 50, 3)))
    assert found.kernels["reason"].to_list() == ["small"]
    assert by_reason(found)["small"] > 2_900


def test_work_that_is_not_known() -> None:
    """Without shapes, and on a device without peaks."""
    unshaped = computed(step(*op(10, "aten::relu", ADD, "-", "-", 50, 30)))
    assert by_reason(unshaped) == {"unknown": 30_000}
    assert unshaped.kernels["ideal_ns"].to_list() == [30_000]
    strange = {"id": 0, "name": "Abacus 9000"}
    assert by_reason(computed(step(*op(10, "aten::relu", ADD, "[[1000]]", "float", 50, 30)), strange)) == {
        "unknown": 30_000
    }


def test_a_bound_beyond_the_kernel_is_cut() -> None:
    """Faster than the table allows: nothing is lost, and the sum still holds."""
    found = computed(step(*op(10, "aten::relu", ADD, "[[100000000]]", "float", 50, 100)))
    assert found.kernels["least_ns"][0] > 100_000
    assert by_reason(found) == {"ideal": 100_000}


def test_fusion_would_keep_what_lies_between_two_kernels() -> None:
    """Of add and relu the sum is written and read again: two of five tensors."""
    shape = "[[100000000],[100000000]]"
    rows = [
        *op(10, "aten::add", ADD, shape, "float,float", 50, 300),
        *op(20, "aten::relu", ADD, "[[100000000]]", "float", 350, 200),
    ]
    found = computed(step(*rows))
    chain = found.chains.row(0, named=True)
    assert (chain["kernels"], chain["time_ns"]) == (2, 500_000)
    assert chain["bytes_total"] == 5 * 400_000_000
    assert chain["bytes_in_out"] == 3 * 400_000_000
    least = 250_000 + 166_666
    assert by_reason(found)["traffic"] == pytest.approx(0.4 * least, abs=3)
    assert by_reason(found)["ideal"] == pytest.approx(0.6 * least, abs=3)


def test_a_product_ends_a_chain() -> None:
    shape = "[[100000000],[100000000]]"
    rows = [
        *op(10, "aten::add", ADD, shape, "float,float", 50, 300),
        *op(20, "aten::mm", GEMM, "[[1000,1000],[1000,1000]]", "float,float", 350, 100),
        *op(30, "aten::relu", ADD, "[[100000000]]", "float", 450, 200),
    ]
    found = computed(step(*rows))
    assert found.chains.is_empty()
    assert found.kernels["chain"].n_unique() == 3
    assert "traffic" not in by_reason(found)


def test_kernels_that_overlap_share_their_time() -> None:
    """Two streams, 100 µs each, 50 of them together: 75 for each."""
    rows = [
        *op(10, "aten::relu", ADD, "[[100000000]]", "float", 50, 100),
        "main  20  8  aten::neg  op  -  [[1000]]  float",
        "main  21  5  cudaLaunchKernel  runtime  other  -  -",
        "stream 9  100  100  other  kernel  -  -  -",
    ]
    found = computed(step(*rows))
    assert found.kernels["time_ns"].to_list() == [75_000, 75_000]


def test_kernels_of_one_op_share_its_work() -> None:
    """The padding before a product has none of it; both have the op's time."""
    rows = [
        "main  10  30  aten::mm  op  -  [[4096,4096],[4096,4096]]  c10::BFloat16,c10::BFloat16",
        "main  11  5  cudaLaunchKernel  runtime  splitKreduce_kernel  -  -",
        f"main  20  5  cudaLaunchKernel  runtime  {BF16}  -  -",
        "stream 7  50  50  splitKreduce_kernel  kernel  -  -  -",
        f"stream 7  100  200  {BF16}  kernel  -  -  -",
    ]
    found = computed(step(*rows)).kernels.sort("time_ns")
    assert found["flops"].sum() == 2 * 4096**3
    assert found["flops"].to_list()[-1] > 0


def test_ops_of_the_optimizer() -> None:
    """Below Optimizer.step, but not in zero_grad."""
    rows = [
        "main  5  40  Optimizer.step#SGD.step  annotation  -  -  -",
        *op(10, "aten::add_", ADD, "[[1000000],[1000000]]", "float,float", 50, 10),
        "main  60  40  Optimizer.zero_grad#SGD.zero_grad  annotation  -  -  -",
        *op(65, "aten::fill_", ADD, "[[1000000]]", "float", 110, 10),
    ]
    assert computed(step(*rows)).kernels["class"].cast(pl.String).to_list() == ["optimizer", "copy"]


def test_a_trace_without_kernels() -> None:
    found = computed(step("main  10  8  aten::mm  op  -  [[8,8],[8,8]]  float,float"))
    assert found.kernels.is_empty()
    assert found.parts.is_empty()
    assert found.chains.is_empty()


@pytest.mark.parametrize("gigabytes", [0, -5, 1e300])
def test_peaks_that_make_no_sense(gigabytes: float) -> None:
    """As a damaged file may give them: the sums still hold."""
    device: dict[str, object] = {
        "id": 0,
        "name": "TPU v0",
        "peak_teraflops_per_second": 1,
        "peak_hbm_bw_gigabytes_per_second": gigabytes,
    }
    found = computed(step(*op(10, "aten::relu", ADD, "[[1000000]]", "float", 50, 30)), device)
    assert sum(by_reason(found).values()) == 30_000
    assert found.kernels["ideal_ns"][0] >= 0


def test_tensors_larger_than_any_memory() -> None:
    shape = "[[4611686018427387904,4]]"
    found = computed(step(*op(10, "aten::relu", ADD, shape, "double", 50, 30)))
    assert by_reason(found) == {"unknown": 30_000}


def test_what_no_memory_could_have_moved_is_not_known() -> None:
    """A relu over 800 MB in 10 µs would be 80 TB/s: the op touched less than it was given."""
    found = computed(step(*op(10, "aten::relu", ADD, "[[100000000]]", "float", 50, 10)))
    assert found.kernels["bytes"].to_list() == [None]
    assert found.kernels["bound"].to_list() == [None]
    assert by_reason(found) == {"unknown": 10_000}


def test_an_op_that_is_mostly_impossible_is_not_known_at_all() -> None:
    found = computed(
        step(
            *op(10, "aten::relu", ADD, "[[100000000]]", "float", 50, 10),
            *op(100, "aten::relu", ADD, "[[1000]]", "float", 150, 3),
            *op(200, "aten::sigmoid", ADD, "[[1000000]]", "float", 250, 10),
        )
    )
    assert found.kernels["bytes"].to_list() == [None, None, 8_000_000]
    assert by_reason(found)["unknown"] == 13_000


def test_what_no_unit_could_have_computed_is_not_known() -> None:
    """2·4096³ FLOPs in 20 µs would be 6.9 PFLOP/s, more than an H200 reaches in any format."""
    found = computed(step(*op(10, "aten::mm", BF16, "[[4096,4096],[4096,4096]]", "c10::BFloat16,c10::BFloat16", 50, 20)))  # fmt: skip
    assert found.kernels["flops"].to_list() == [None]
    assert by_reason(found) == {"unknown": 20_000}


@pytest.mark.parametrize(
    ("op_name", "kind"), [("aten::_foreach_copy_", "copy"), ("aten::_foreach_addcdiv_", "optimizer")]
)
def test_a_list_of_copies_is_no_optimizer(op_name: str, kind: str) -> None:
    """Both have a kernel of the name that optimizers use; only the step of an optimizer makes a copy a part of it."""
    kernel = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Copy>"
    found = computed(step(*op(10, op_name, kernel, "[[4096],[4096]]", "float,float", 50, 20)))
    assert found.kernels["class"].to_list() == [kind]
