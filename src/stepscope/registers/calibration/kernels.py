"""What kernels reach of a device's peaks, and what fusing them leaves."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11"
_JOBS = "chosen while looking at jobs with a planted bottleneck and their fixes (benchmarks/diagnosis)"
_WHEN = "2026-11-15"

TENSOR_CORES_OF_PEAK_RATIO = measured(
    "TENSOR_CORES_OF_PEAK_RATIO",
    0.83,
    unit="share of the ratio of the peaks",
    device="H200",
    how="pairs of equal jobs in fp32 and TF32 (benchmarks/diagnosis): large products",
    when=_WHEN,
    seen="0.82 to 0.86",
)
TF32_OF_PEAK = measured(
    "TF32_OF_PEAK",
    0.72,
    unit="share of the TF32 peak",
    device="H200",
    how="large products and convolutions of benchmarks/diagnosis",
    when=_WHEN,
    seen="0.69 to 0.82",
)
PRODUCT_AT_BEST = measured(
    "PRODUCT_AT_BEST",
    0.6,
    unit="× the time that the peaks promise",
    device="H200",
    how=_JOBS + "; kernels that were slow before stay so in part",
    when=_WHEN,
)
BETWEEN_TF32_AND_BF16 = measured(
    "BETWEEN_TF32_AND_BF16",
    0.9,
    unit="× the time in TF32",
    device="H200",
    how=CHOSEN + "; the advice is either, and bfloat16 saves more",
)
UNKNOWN_TENSOR_CORE_FACTOR = measured(
    "UNKNOWN_TENSOR_CORE_FACTOR",
    0.25,
    unit="× the time in fp32",
    device="a device whose peaks are not known",
    how=CHOSEN,
)
FUSED_ATTENTION_OF_PEAK = measured(
    "FUSED_ATTENTION_OF_PEAK",
    0.38,
    unit="share of the 16-bit peak",
    device="H200",
    how="fused attention, forward and backward together, heads of 64 (benchmarks/diagnosis)",
    when=_WHEN,
    seen="0.25 to 0.4",
)
FUSED_ATTENTION_FACTOR = measured(
    "FUSED_ATTENTION_FACTOR",
    0.5,
    unit="× the time of its products",
    device="a device whose peaks are not known",
    how=CHOSEN,
)
LARGE_PRODUCTS_OF_PEAK = measured(
    "LARGE_PRODUCTS_OF_PEAK", 0.5, unit="share of the peak", device="H200", how=_JOBS, when=_WHEN
)
NORM_CHANNELS_LAST = measured(
    "NORM_CHANNELS_LAST",
    0.4,
    unit="× the time of batch normalisation",
    device="H200",
    how="batch normalisation with channels first and last (benchmarks/diagnosis)",
    when=_WHEN,
)
FUSED_ELEMENTWISE = measured(
    "FUSED_ELEMENTWISE",
    0.28,
    unit="× the time of elementwise kernels",
    device="H200",
    how=_JOBS + "; chains of three or four become one",
    when=_WHEN,
)
FUSED_OPTIMIZER_TRAFFIC = measured(
    "FUSED_OPTIMIZER_TRAFFIC",
    0.25,
    unit="× the device time of an optimizer",
    device="H200",
    how=_JOBS + "; Adam as single ops passes over memory in about a dozen kernels, fused in one",
    when=_WHEN,
)
FUSED_OPTIMIZER_LAUNCHES = measured(
    "FUSED_OPTIMIZER_LAUNCHES",
    0.05,
    unit="× the host time of an optimizer",
    device=_H200,
    how=_JOBS,
    when=_WHEN,
)
TF32_CAPABILITY = measured(
    "TF32_CAPABILITY",
    8,
    unit="major compute capability",
    device="NVIDIA",
    how="data sheets: tensor cores take fp32 products as TF32 from Ampere on",
)
HALF_TENSOR_CAPABILITY = measured(
    "HALF_TENSOR_CAPABILITY",
    7,
    unit="major compute capability",
    device="NVIDIA",
    how="data sheets: tensor cores for fp16 from Volta on",
)
HALF_TENSOR_SM = measured(
    "HALF_TENSOR_SM",
    70,
    unit="SM version",
    device="NVIDIA",
    how="data sheets: tensor cores for 16-bit numbers from Volta on",
)
TF32_TENSOR_SM = measured(
    "TF32_TENSOR_SM",
    80,
    unit="SM version",
    device="NVIDIA",
    how="data sheets: tensor cores for TF32 from Ampere on",
)
L2_OF_MEMORY = measured(
    "L2_OF_MEMORY",
    3.0,
    unit="× the bandwidth of the memory",
    device="a device whose L2 has no known bandwidth",
    how=CHOSEN + "; 2.1 (H200) to 4.6 (A100 40 GB) are known of others",
)
