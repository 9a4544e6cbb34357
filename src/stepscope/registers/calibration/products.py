"""What products reach in formats that tensor cores take, what such a format leaves of other kernels, and what no kernel reaches."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_WHEN = "2026-11-15"

BF16_PRODUCT_BEST = measured(
    "BF16_PRODUCT_BEST",
    0.78,
    unit="share of the 16-bit peak",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: large products",
    when=_WHEN,
    seen="0.62 to 0.78",
)
BF16_PRODUCT_WORST = measured(
    "BF16_PRODUCT_WORST",
    0.62,
    unit="share of the 16-bit peak",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: large products",
    when=_WHEN,
    seen="0.62 to 0.78",
)
TF32_PRODUCT_BEST = measured(
    "TF32_PRODUCT_BEST",
    0.82,
    unit="share of the TF32 peak",
    device="H200",
    how="large products and convolutions of benchmarks/diagnosis",
    when=_WHEN,
    seen="0.69 to 0.82; smaller ones less",
)
TF32_PRODUCT_WORST = measured(
    "TF32_PRODUCT_WORST",
    0.62,
    unit="share of the TF32 peak",
    device="H200",
    how="large products and convolutions of benchmarks/diagnosis",
    when=_WHEN,
    seen="0.69 to 0.82; smaller ones less",
)
TF32_NT_BEST = measured(
    "TF32_NT_BEST",
    0.53,
    unit="share of the TF32 peak",
    device="H200",
    how="kernels of cuBLAS with nt in their names, which make gradients of weights, in one job of PyTorch and three of JAX",
    when="2026-11-17",
    seen="0.36 to 0.53, those over 100 µs 0.39 to 0.53; others of the same jobs 0.67 to 0.84",
)
TF32_NT_WORST = measured(
    "TF32_NT_WORST",
    0.39,
    unit="share of the TF32 peak",
    device="H200",
    how="as TF32_NT_BEST",
    when="2026-11-17",
    seen="0.36 to 0.53, those over 100 µs 0.39 to 0.53; others of the same jobs 0.67 to 0.84",
)
TF32_CONVOLUTION_WORST = measured(
    "TF32_CONVOLUTION_WORST",
    0.5,
    unit="share of the TF32 peak",
    device="H200",
    how="all convolutions of two jobs of benchmarks/diagnosis with TF32, forwards and backwards; chosen below",
    when="2026-11-17",
    seen="0.55 and 0.58; gradients of weights 0.37 to 0.40, forward passes 0.62 to 0.89",
)
K_MAJOR_TF32_CAPABILITY = measured(
    "K_MAJOR_TF32_CAPABILITY",
    9,
    unit="major compute capability",
    device="NVIDIA",
    how="specified in the PTX ISA: wgmma takes operands that are not K-major only where they have 16 bits",
)
PRODUCT_TRAFFIC_BEST = measured(
    "PRODUCT_TRAFFIC_BEST",
    0.88,
    unit="share of the memory's bandwidth",
    device="H200",
    how="TF32 products with a short side, which memory bounds, in four jobs of blind trials",
    when="2026-11-17",
    seen="0.71 to 0.88; 0.51 and 0.52 for one fusion in two of the jobs",
)
PRODUCT_TRAFFIC_WORST = measured(
    "PRODUCT_TRAFFIC_WORST",
    0.7,
    unit="share of the memory's bandwidth",
    device="H200",
    how="as PRODUCT_TRAFFIC_BEST",
    when="2026-11-17",
    seen="0.71 to 0.88; 0.51 and 0.52 for one fusion in two of the jobs",
)
BF16_CONVOLUTION_BEST = measured(
    "BF16_CONVOLUTION_BEST",
    0.55,
    unit="share of the 16-bit peak",
    device="H200",
    how="chosen around the pairs of a ResNet in fp32 and bf16",
    when=_WHEN,
    seen="0.4 in one pair",
)
BF16_CONVOLUTION_WORST = measured(
    "BF16_CONVOLUTION_WORST",
    0.3,
    unit="share of the 16-bit peak",
    device="H200",
    how="chosen around the pairs of a ResNet in fp32 and bf16",
    when=_WHEN,
    seen="0.4 in one pair",
)
AUTOCAST_OTHERS_BEST = measured(
    "AUTOCAST_OTHERS_BEST",
    0.85,
    unit="× the time of other kernels",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: half the bytes, and casts",
    when=_WHEN,
    seen="0.85 to 1.25",
)
AUTOCAST_OTHERS_WORST = measured(
    "AUTOCAST_OTHERS_WORST",
    1.25,
    unit="× the time of other kernels",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: half the bytes, and casts",
    when=_WHEN,
    seen="0.85 to 1.25",
)
UNKNOWN_TENSOR_CORES_BEST = measured(
    "UNKNOWN_TENSOR_CORES_BEST",
    0.12,
    unit="× the time in fp32",
    device="H200",
    how="chosen; for devices whose peaks are not known",
    when=_WHEN,
    seen="nothing",
)
UNKNOWN_TENSOR_CORES_WORST = measured(
    "UNKNOWN_TENSOR_CORES_WORST",
    0.4,
    unit="× the time in fp32",
    device="H200",
    how="chosen; for devices whose peaks are not known",
    when=_WHEN,
    seen="nothing",
)
HALF_TRAFFIC_BEST = measured(
    "HALF_TRAFFIC_BEST",
    0.55,
    unit="× the time of other kernels",
    device="H200",
    how="around the gains of four jobs of JAX in fp32 and bf16: half the bytes at best, but optimizers and losses keep fp32",
    when="2026-11-17",
    seen="gains 0.88, 0.97, 1.00 and 1.08 times the middle",
)
HALF_TRAFFIC_WORST = measured(
    "HALF_TRAFFIC_WORST",
    1.0,
    unit="× the time of other kernels",
    device="H200",
    how="as HALF_TRAFFIC_BEST: with a cast for each that is saved, nothing",
    when="2026-11-17",
    seen="gains 0.88, 0.97, 1.00 and 1.08 times the middle",
)
UNKNOWN_HALF = measured(
    "UNKNOWN_HALF",
    0.6,
    unit="× the time in TF32",
    device="any device",
    how=CHOSEN + "; for products without FLOPs: the peak of 16-bit numbers is twice that of TF32",
)
BF16_ATTENTION_BEST = measured(
    "BF16_ATTENTION_BEST",
    0.55,
    unit="share of the 16-bit peak",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: fused attention",
    when=_WHEN,
    seen="0.30 to 0.55",
)
BF16_ATTENTION_WORST = measured(
    "BF16_ATTENTION_WORST",
    0.3,
    unit="share of the 16-bit peak",
    device="H200",
    how="pairs of equal jobs in fp32 and under bf16 autocast: fused attention",
    when=_WHEN,
    seen="0.30 to 0.55",
)
SHORTEST_PRODUCT_NS = measured(
    "SHORTEST_PRODUCT_NS",
    4_000,
    unit="ns",
    device="H200",
    how="the shortest products in recordings of benchmarks/diagnosis: no format makes one shorter",
    when=_WHEN,
    seen="2 to 6 µs",
)
IMPOSSIBLE_RATE = measured(
    "IMPOSSIBLE_RATE",
    1.5,
    unit="× the best rate of the device in any format, or of its fastest memory",
    device="V100, A100, H100, H200, MI300X",
    how="all kernels of the corpora with a formula and a length: 1.0 at most, but for ops that are given more than they touch",
    when="2026-11-18",
    seen="1.9 to 234 where an op is given a whole table of embeddings or a whole KV cache",
)
BASIS_VECTOR_BEST = measured(
    "BASIS_VECTOR_BEST",
    0.8,
    unit="× the time for each vector that a derivative is carried for",
    device="H200",
    how="two networks of five layers trained on their own derivatives: jacrev against jacfwd (16 and 3 vectors), and hessian against jvp of jvp (6 and 1); the range was chosen around them",
    when="2026-11-19",
    seen="the step was 0.99 and 0.99 of what equal vectors leave",
)
BASIS_VECTOR_WORST = measured(
    "BASIS_VECTOR_WORST",
    1.3,
    unit="× the time for each vector that a derivative is carried for",
    device="H200",
    how="two networks of five layers trained on their own derivatives: jacrev against jacfwd (16 and 3 vectors), and hessian against jvp of jvp (6 and 1); the range was chosen around them",
    when="2026-11-19",
    seen="the step was 0.99 and 0.99 of what equal vectors leave",
)
BASIS_VECTOR_BEST_ON_HOST = measured(
    "BASIS_VECTOR_BEST_ON_HOST",
    0.3,
    unit="× the time for each vector that a derivative is carried for, on a CPU",
    device="2 cores of an x86-64 server, with other load",
    how="jacrev against jacfwd (16 and 3 vectors) of four layers of 128 units, 128 and 1024 samples: fewer vectors fit into caches",
    when="2026-11-19",
    seen="the step was 1.2 to 3 times as fast as what equal vectors leave",
)
