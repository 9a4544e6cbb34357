"""Bytes of number formats, and FLOPs per element or product that a formula counts. No thresholds."""

from __future__ import annotations

# As PyTorch's profiler names the types of inputs.
ITEM_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "long": 8, "short": 2,
    "signed char": 1, "unsigned char": 1, "bool": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "uint8": 1,
    "unsigned short": 2, "unsigned int": 4, "unsigned long": 8, "c10::complex<c10::Half>": 4,
}  # fmt: skip
# As labels of kernels name them.
PRECISION_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
# c10::ScalarType, which some ops get as an argument.
SCALAR_TYPE_BYTES = {"5": 2, "6": 4, "7": 8, "15": 2}

BOOL = 1
INDEX = 8  # indices are 64-bit
SINGLE = 4  # statistics and sums are kept in fp32
HALF = 2

ATTENTION_FORWARD = 2  # products with the keys' and the values' depth: 2 · pairs · depth each
ATTENTION_BACKWARD = (3, 2)  # such products with the depth of keys and of values; one of each recomputes
SOFTMAX_FLOPS = 5  # largest, difference, exponential, sum, quotient
SOFTMAX_BACKWARD_FLOPS = 4
NORM_FLOPS = 8  # two moments, then scale and shift
NORM_BACKWARD_FLOPS = 12
ADAM_FLOPS = 12
SGD_FLOPS = 4
LIST_CHUNK = 65_536  # elements that a block of PyTorch's kernels on lists covers at most
# Lists that are read, and written, of fused optimizers; momentum may be off.
LIST_PASSES = {"_fused_adam_": 7, "_fused_adamw_": 7, "_fused_sgd_": 3}
MOMENTS = 2  # mean and inverse deviation
LSTM_STATES = 2  # hidden and cell

# Where an op has the arguments that a formula needs.
CAUSAL_PLACES = {
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_cudnn_attention": 6,
    "_flash_attention_forward": 8,
    "_efficient_attention_forward": 9,
    "_cudnn_attention_forward": 10,
    "_scaled_dot_product_flash_attention_backward": 11,
    "_scaled_dot_product_efficient_attention_backward": 11,
    "_scaled_dot_product_cudnn_attention_backward": 14,
    "_flash_attention_backward": 11,
    "_efficient_attention_backward": 14,
    "_cudnn_attention_backward": 14,
}
