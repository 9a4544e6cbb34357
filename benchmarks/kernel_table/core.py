"""Which cases make the table: few enough for a few minutes of a GPU, and as different as they can be."""

from __future__ import annotations

from benchmarks.kernel_table.cases import Case

TORCH = """
mm/fp32/square mm/tf32/square mm/bf16/square mm/fp16/square mm/fp64/square fp8/e4m3 int8/nt
conv/fp32/3x3 conv/tf32/3x3/last conv/bf16/3x3/last conv/fp16/3x3
attention/flash/bf16/64 attention/efficient/fp16/128/causal attention/cudnn/bf16/64 attention/math/bf16/64
elementwise/bf16/add elementwise/fp32/gelu elementwise/fp16/softmax elementwise/fp32/layer_norm moving/fp32/transpose
optimizer/adam_fused/fp32 optimizer/adam_foreach/fp32
mm/fp32/odd mm/fp32/one_row mm/fp32/few_rows mm/fp32/long_sum mm/tf32/odd mm/tf32/few_rows
mm/bf16/odd mm/bf16/even mm/bf16/small mm/bf16/few_rows mm/bf16/one_row mm/bf16/long_sum mm/bf16/large
mm/fp16/odd mm/fp16/even mm/fp16/one_row mm/fp64/odd
bmm/fp32 bmm/tf32 bmm/bf16 linear/bf16 linear/fp32 mv/bf16 mv/fp32 gelu/bf16 sparse/bf16
fp8/e5m2_e4m3 fp8/rowwise int8/nn complex/64 complex/128 grouped/bf16
conv/fp32/1x1 conv/fp32/7x7_rgb conv/fp32/depthwise conv/fp32/3d conv/fp32/transposed
conv/tf32/7x7_rgb conv/tf32/grouped conv/tf32/odd
conv/bf16/3x3 conv/bf16/1x1/last conv/bf16/7x7_rgb/last conv/bf16/strided conv/bf16/odd conv/bf16/grouped
conv/bf16/depthwise conv/bf16/1d conv/bf16/3d conv/fp16/depthwise/last conv/fp64/3x3
lstm/fp16 lstm/fp32
attention/flash/fp16/128/causal attention/efficient/bf16/64 attention/efficient/fp32/64 attention/efficient/bf16/masked
attention/cudnn/fp16/128/causal attention/math/tf32/64
elementwise/bf16/layer_norm elementwise/bf16/rms_norm elementwise/bf16/sum elementwise/bf16/dropout elementwise/fp32/power
elementwise/fp32/variance elementwise/fp32/norm elementwise/fp32/cumulative elementwise/fp64/add
elementwise/fp16/silu moving/bf16/concatenate moving/fp32/sort moving/fp32/random
moving/fp32/top_k moving/fp32/gather
backward/layer_norm/bf16 backward/batch_norm/bf16 backward/batch_norm/fp32 backward/group_norm/fp32
embedding/fp32 cross_entropy/fp32 scatter/fp32 solver/fp32 fourier/fp32 sparse_rows/fp32
triton/bf16 triton/tf32 triton/fp32 triton/fp8 triton/scale/fp32
inductor/pointwise/bf16 inductor/reductions/fp32 inductor/loss/fp32 inductor/flex/bf16 job/images_bf16 job/text_fp16
inductor/mm/bf16 inductor/bmm/bf16 inductor/mm/tf32
"""
JAX = """
jax/square/bf16 jax/square/fp32 jax/square/tf32 jax/square/fp16 jax/fp8 jax/int8 jax/conv/bf16 jax/conv/fp32
jax/attention_cudnn/bf16 jax/attention_xla/bf16 jax/norms/bf16 jax/moving/fp32 jax/mlp/bf16 jax/mlp/fp32 jax/fused/bf16
jax/fused/tf32 jax/odd/bf16 jax/odd/fp32 jax/row/bf16 jax/row/fp32 jax/long_sum/tf32 jax/conv/tf32 jax/norms/fp32
"""


def core(cases: list[Case], names: str) -> list[Case]:
    """The named cases in the order of the list: where time runs out, the last are lost."""
    by_name = {case.name: case for case in cases}
    return [by_name[name] for name in names.split()]
