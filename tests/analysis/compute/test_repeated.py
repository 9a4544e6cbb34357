"""Work that checkpointing does again: with frames, without them, and what only looks like it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.repeated import repeated_kernels
from tests.analysis.compute.traces import by_reason, compute_trace, computed

GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
HEAD = """
    track     start   dur  name              kind        launches  shapes  dtypes
    main          0  1000  ProfilerStep#0    annotation  -         -       -
"""
TYPES = "float,float,float"
SHAPES = "[[64],[64,64],[64,64]]"


def product(track: str, at: int, name: str = "aten::addmm", shapes: str = SHAPES) -> list[str]:
    """An op and its kernel of 20 µs."""
    return [
        f"{track}  {at}  8  {name}  op  -  {shapes}  {TYPES}",
        f"{track}  {at + 1}  5  cudaLaunchKernel  runtime  {GEMM}  -  -",
        f"stream 7  {at + 20}  20  {GEMM}  kernel  -  -  -",
    ]


def lines(*rows: str) -> str:
    """One step with these rows."""
    return HEAD + "\n".join(rows)


def test_below_the_hook_of_a_checkpoint() -> None:
    hook = "autograd  300  100  torch/utils/checkpoint.py(1100): unpack_hook  python  -  -  -"
    found = computed(lines(*product("main", 10), hook, *product("autograd", 310), *product("autograd", 500)))
    assert found.repeated["how"].to_list() == ["frame"]
    assert by_reason(found)["recomputed"] == 20_000


def test_a_product_of_the_forward_pass_inside_a_node_of_autograd() -> None:
    """Without stacks: aten::linear is never a part of a gradient's formula."""
    node = "autograd  300  100  AddBackward0  op  -  -  -"
    around = "autograd  305  60  aten::linear  op  -  -  -"
    found = computed(lines(*product("main", 10), node, around, *product("autograd", 310)))
    assert found.repeated["how"].to_list() == ["product"]
    assert by_reason(found)["recomputed"] == 20_000


def test_the_product_of_a_gradient_may_have_the_same_shapes() -> None:
    """Square matrices: MmBackward0 calls aten::mm itself."""
    square = "[[64,64],[64,64]]"
    node = "autograd  300  100  MmBackward0  op  -  -  -"
    rows = [*product("main", 10, "aten::mm", square), node, *product("autograd", 310, "aten::mm", square)]
    assert computed(lines(*rows)).repeated.is_empty()


def numbered(*rows: str) -> str:
    """One step with these rows, each of which ends with its number in the sequence of autograd."""
    head = HEAD.strip().splitlines()
    return "\n".join([f"{head[0]}  sequence", f"{head[1]}  -", *rows])


def test_a_gradient_of_ones_own_may_call_what_the_forward_pass_calls() -> None:
    """The product with a symmetric matrix is its own gradient, computed with autograd off: without a number."""
    forward = [f"{row}  {number}" for row, number in zip(product("main", 10), "1--", strict=True)]
    node = "autograd  300  100  SymSpMMBackward  op  -  -  -  1"
    around = "autograd  305  60  aten::matmul  op  -  [[64,64],[64,64]]  float,float  {}"
    again = [f"{row}  -" for row in product("autograd", 310)]
    assert computed(numbered(*forward, node, around.format("-"), *again)).repeated.is_empty()
    found = computed(numbered(*forward, node, around.format("7"), *again))
    assert found.repeated["how"].to_list() == ["product"]


def test_elementwise_work_alone_proves_nothing() -> None:
    add = "void at::native::vectorized_elementwise_kernel<4,float>"
    rows = [
        "main  10  8  aten::relu  op  -  [[640]]  float",
        f"main  11  5  cudaLaunchKernel  runtime  {add}  -  -",
        f"stream 7  30  20  {add}  kernel  -  -  -",
        "autograd  300  100  AddBackward0  op  -  -  -",
        "autograd  310  8  aten::relu  op  -  [[640]]  float",
        f"autograd  311  5  cudaLaunchKernel  runtime  {add}  -  -",
        f"stream 7  330  20  {add}  kernel  -  -  -",
    ]
    assert computed(lines(*rows)).repeated.is_empty()


def in_program(scope: str) -> list[str | None]:
    """How a kernel of this scope runs again, if it does."""
    trace = compute_trace(lines("stream 7  20  20  gemm_fusion_dot_35  kernel  -  -  -"))
    kernel = trace.events.filter(kind="kernel").select(event="id").with_columns(**{"class": pl.lit("matmul")})
    calls = kernel.select("event", scope=pl.lit(scope).cast(pl.Categorical))
    kernels = kernel.with_columns(name=pl.lit("gemm_fusion_dot_35"))
    return repeated_kernels(trace, kernels, calls)["how"].to_list()


def test_ops_of_a_program_that_are_named_rematerialised() -> None:
    """JAX names what a checkpoint computes again; the checkpoint's own gradients have its name without that."""
    assert in_program("jit(f)/transpose(jvp())/checkpoint/rematted_computation") == ["program"]
    assert in_program("jit(f)/remat2/body") == ["program"]
    assert in_program("jit(f)/transpose(jvp())/checkpoint") == []
    assert in_program("jit(f)/rematch") == []
