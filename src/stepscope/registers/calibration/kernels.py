"""What kernels reach of a device's peaks, and what fusing them leaves."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11"
_JOBS = "chosen while looking at jobs with a planted bottleneck and their fixes (benchmarks/diagnosis)"
_WHEN = "2026-11-15"

LOOKUP_BEST = measured(
    "LOOKUP_BEST",
    1.3,
    unit="× the time that the bytes of the rows need",
    device="H200",
    how="kernels of compiled programs that gather rows of embedding tables or add to them, in jobs of the eighth blind trial",
    when="2026-11-17",
    seen="1.3, 2.8 and 3.1",
)
LOOKUP_WORST = measured(
    "LOOKUP_WORST",
    4.0,
    unit="× the time that the bytes of the rows need",
    device="H200",
    how="as LOOKUP_BEST; rows that repeat, and short ones, take longer",
    when="2026-11-17",
    seen="1.3, 2.8 and 3.1",
)
XLA_DOUBLE_TO_SINGLE_LEAST = measured(
    "XLA_DOUBLE_TO_SINGLE_LEAST",
    0.3,
    unit="share of the time",
    device="x86-64, 2 cores, JAX 0.10.2",
    how="programs of one op with float32 / with float64, the fastest of 15 runs",
    when="2026-11-19",
    seen="products 0.29 and 0.39, tanh 0.39, sum 0.46, gelu 0.50, exp 0.55, softmax 0.58; a convolution 0.05; a training job 0.38 to 0.47",
)
FUSED_ATTENTION_BEST = measured(
    "FUSED_ATTENTION_BEST",
    0.45,
    unit="share of the 16-bit peak",
    device="H200",
    how="fused attention, forward and backward together, heads of 64 (benchmarks/diagnosis)",
    when=_WHEN,
    seen="0.25 to 0.55 between jobs; about 0.42 of the causal half in one forward pass of 4,096 tokens (blind trial, after the first look)",
)
FUSED_ATTENTION_WORST = measured(
    "FUSED_ATTENTION_WORST",
    0.28,
    unit="share of the 16-bit peak",
    device="H200",
    how="fused attention, forward and backward together, heads of 64 (benchmarks/diagnosis)",
    when=_WHEN,
    seen="0.25 to 0.55 between jobs; about 0.42 of the causal half in one forward pass of 4,096 tokens (blind trial, after the first look)",
)
FUSED_FP32_ATTENTION_BEST = measured(
    "FUSED_FP32_ATTENTION_BEST",
    0.65,
    unit="share of the fp32 peak",
    device="H200",
    how=CHOSEN + "; kernels for fp32 split products into TF32",
)
FUSED_FP32_ATTENTION_WORST = measured(
    "FUSED_FP32_ATTENTION_WORST", 0.3, unit="share of the fp32 peak", device="H200", how=CHOSEN
)
FUSED_TF32_ATTENTION_BEST = measured(
    "FUSED_TF32_ATTENTION_BEST",
    0.35,
    unit="share of the TF32 peak",
    device="H200",
    how=CHOSEN + "; for fp32 there is only the memory-efficient kernel, written for earlier tensor cores",
)
FUSED_TF32_ATTENTION_WORST = measured(
    "FUSED_TF32_ATTENTION_WORST", 0.15, unit="share of the TF32 peak", device="H200", how=CHOSEN
)
FUSED_ATTENTION_FACTOR = measured(
    "FUSED_ATTENTION_FACTOR",
    0.5,
    unit="× the time of its products",
    device="a device whose peaks are not known",
    how=CHOSEN,
)
CAUSAL_WORK = measured(
    "CAUSAL_WORK",
    0.5,
    unit="share of the products",
    device="any device",
    how="specified by the mask: fused attention skips the blocks above the diagonal, half of the table of scores",
)
LARGE_PRODUCTS_OF_PEAK = measured(
    "LARGE_PRODUCTS_OF_PEAK", 0.5, unit="share of the peak", device="H200", how=_JOBS, when=_WHEN
)
NORM_CHANNELS_LAST_LEAST = measured(
    "NORM_CHANNELS_LAST_LEAST",
    0.25,
    unit="× the time of batch normalisation",
    device="H200",
    how="batch normalisation with channels first and last (benchmarks/diagnosis); at best",
    when=_WHEN,
    seen="0.4 in one pair; the bounds are chosen around it",
)
NORM_CHANNELS_LAST_MOST = measured(
    "NORM_CHANNELS_LAST_MOST",
    0.55,
    unit="× the time of batch normalisation",
    device="H200",
    how="the same, at worst",
    when=_WHEN,
    seen="0.4 in one pair; the bounds are chosen around it",
)
FUSED_ELEMENTWISE_LEAST = measured(
    "FUSED_ELEMENTWISE_LEAST",
    0.25,
    unit="× the time of elementwise kernels",
    device="H200",
    how=_JOBS + "; chains of three or four become one",
    when=_WHEN,
    seen="0.28 in the jobs; the bounds are chosen around it",
)
FUSED_ELEMENTWISE_MOST = measured(
    "FUSED_ELEMENTWISE_MOST",
    0.35,
    unit="× the time of elementwise kernels",
    device="H200",
    how=_JOBS + "; chains of two become one",
    when=_WHEN,
    seen="0.28 in the jobs; the bounds are chosen around it",
)
FUSED_OPTIMIZER_TRAFFIC_LEAST = measured(
    "FUSED_OPTIMIZER_TRAFFIC_LEAST",
    0.18,
    unit="× the device time of an optimizer",
    device="H200",
    how=_JOBS + "; Adam as single ops passes over memory in about a dozen kernels, fused in one",
    when=_WHEN,
    seen="0.25 in the jobs; the bounds are chosen around it",
)
FUSED_OPTIMIZER_TRAFFIC_MOST = measured(
    "FUSED_OPTIMIZER_TRAFFIC_MOST",
    0.45,
    unit="× the device time of an optimizer",
    device="H200",
    how=_JOBS + "; SGD with momentum passes over memory in a few kernels",
    when=_WHEN,
    seen="0.25 in the jobs; the bounds are chosen around it",
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
FUSED_CHAIN_BANDWIDTH = measured(
    "FUSED_CHAIN_BANDWIDTH",
    0.6,
    unit="share of the memory's bandwidth",
    device="H200",
    how="pairs of eager and compiled runs: what fused kernels reach",
    when=_WHEN,
    seen="0.55 to 0.7",
)
FUSED_CHAIN_BEST = measured(
    "FUSED_CHAIN_BEST",
    1.2,
    unit="× the time to read inputs and write outputs",
    device="H200",
    how="pairs of eager and compiled runs, each left out in turn",
    when=_WHEN,
    seen="1.2 to 2.2",
)
FUSED_CHAIN_WORST = measured(
    "FUSED_CHAIN_WORST",
    2.2,
    unit="× the time to read inputs and write outputs",
    device="H200",
    how="pairs of eager and compiled runs, each left out in turn",
    when=_WHEN,
    seen="1.2 to 2.2",
)
FLOPS_OF_PEAK_INSTRUCTION = measured(
    "FLOPS_OF_PEAK_INSTRUCTION",
    2,
    unit="FLOPs",
    device="any device",
    how="specified in data sheets: peaks count a fused multiplication and addition as two, and elementwise kernels do one of them at a time",
)
ALIGNED_SIDE = measured(
    "ALIGNED_SIDE",
    8,
    unit="elements of 16 bits",
    device="H200",
    how="tensor cores load 16 bytes at once: a multiple of 8",
    when=_WHEN,
    seen="kernels of other alignments reach 12 % of the peak at a vocabulary of 50,257",
)
SLOW_PRODUCT_OF_PEAK = measured(
    "SLOW_PRODUCT_OF_PEAK",
    0.4,
    unit="share of the peak",
    device="H200",
    how="products with a vocabulary of 50,257",
    when=_WHEN,
    seen="0.12",
)
ALIGNED_PRODUCT_BEST = measured(
    "ALIGNED_PRODUCT_BEST",
    0.7,
    unit="share of the peak",
    device="H200",
    how="large 16-bit products",
    when=_WHEN,
    seen="0.62 to 0.78",
)
ALIGNED_PRODUCT_WORST = measured(
    "ALIGNED_PRODUCT_WORST",
    0.45,
    unit="share of the peak",
    device="H200",
    how="the same, for sides that stay awkward",
    when=_WHEN,
    seen="chosen below 0.62",
)
L2_OF_MEMORY = measured(
    "L2_OF_MEMORY",
    3.0,
    unit="× the bandwidth of the memory",
    device="a device whose L2 has no known bandwidth",
    how=CHOSEN + "; 2.1 (H200) to 4.6 (A100 40 GB) are known of others",
)
SPARSE_PROGRAM_UPDATE_WORST = measured(
    "SPARSE_PROGRAM_UPDATE_WORST",
    0.04,
    unit="share of the passes over a whole table",
    device=_H200,
    how="a compiled update of the touched rows alone, with sorting their numbers, against the dense one; one job, doubled",
    when="2026-11-16",
    seen="0.02: 0.14 of 7.4 ms for 65,536 of 20 million rows",
)
TABLE_PASS_SLOWER = measured(
    "TABLE_PASS_SLOWER",
    1.16,
    unit="× the time that the bytes need at the memory's peak",
    device="H200",
    how="kernels of compiled programs that zero and update whole embedding tables, in four jobs of blind trials: with SGD, four times the table, and with Adagrad, six times",
    when="2026-11-18",
    seen="1.17 three times, and 1.16",
)
SPARSE_UPDATE_WORST = measured(
    "SPARSE_UPDATE_WORST",
    0.1,
    unit="share of the optimizer's time",
    device="H200",
    how=CHOSEN + "; sorting and merging the rows of a batch, where the device's bandwidth is not known",
)
_SPARSE = "steps of torch.optim on one table of 8 million rows with sparse=True, 8,192 to 425,984 rows a batch, 32 to 128 columns"
SPARSE_ADAGRAD_HOST_NS = measured(
    "SPARSE_ADAGRAD_HOST_NS",
    350_000,
    unit="ns for each table and step",
    device=_H200,
    how=_SPARSE + ": Adagrad, few rows, against the dense step of a small table",
    when="2026-11-18",
    seen="326,000 and 371,000: 181 ops instead of 33",
)
SPARSE_ADAM_HOST_NS = measured(
    "SPARSE_ADAM_HOST_NS",
    1_000_000,
    unit="ns for each table and step",
    device=_H200,
    how=_SPARSE + ": SparseAdam, few rows, against the dense step of Adam on a small table",
    when="2026-11-18",
    seen="790,000 against foreach, 1,210,000 against fused: 255 ops instead of 36",
)
SPARSE_SGD_HOST_NS = measured(
    "SPARSE_SGD_HOST_NS",
    40_000,
    unit="ns for each table and step",
    device=_H200,
    how=_SPARSE + ": SGD, few rows, against the dense step of a small table",
    when="2026-11-18",
    seen="40,000 and 58,000: 52 ops instead of 19; SGD merges no rows",
)
FEW_ROWS_GRADIENT_KERNELS = measured(
    "FEW_ROWS_GRADIENT_KERNELS",
    2,
    unit="kernels",
    device="PyTorch",
    how="read in its source: the dense gradient of up to 3,072 rows is zeros and one kernel; more rows are sorted first",
    seen="22 launches and 10 memsets for 65,536 to 212,992 rows",
)
SPARSE_ROW_BYTES = measured(
    "SPARSE_ROW_BYTES",
    14_000,
    unit="bytes that the memory moves in the time for a row",
    device=_H200,
    how=_SPARSE + ": sorting and merging, from batches of as many elements in 106,496 and 425,984 rows",
    when="2026-11-18",
    seen="2.9 ns a row at 4.8 TB/s, with Adagrad and with SparseAdam",
)
SPARSE_SORT_BYTES = measured(
    "SPARSE_SORT_BYTES",
    3_000,
    unit="bytes that the memory moves in the time for a row",
    device=_H200,
    how=_SPARSE
    + ": Adagrad, a step of 131,072 rows against one of 64, in which the host waits for the sorted rows",
    when="2026-11-18",
    seen="86,000 ns, 0.66 ns a row at 4.8 TB/s",
)
SPARSE_ADAGRAD_ELEMENT_BYTES = measured(
    "SPARSE_ADAGRAD_ELEMENT_BYTES",
    100,
    unit="bytes that the memory moves in the time for an element",
    device=_H200,
    how=_SPARSE + ": Adagrad, what is left without the rows",
    when="2026-11-18",
    seen="0.021 ns an element at 4.8 TB/s; two other batches within 8 %; SGD needs less",
)
SPARSE_ADAM_ELEMENT_BYTES = measured(
    "SPARSE_ADAM_ELEMENT_BYTES",
    250,
    unit="bytes that the memory moves in the time for an element",
    device=_H200,
    how=_SPARSE + ": SparseAdam, what is left without the rows",
    when="2026-11-18",
    seen="0.052 ns an element at 4.8 TB/s; two other batches within 20 %",
)
PARAMETER_BYTES = measured(
    "PARAMETER_BYTES",
    4,
    unit="bytes of a parameter",
    device="PyTorch",
    how="read in its source: optimizers keep fp32",
)
FUSED_ADAM_TENSORS = measured(
    "FUSED_ADAM_TENSORS",
    7,
    unit="tensors",
    device="any device",
    how="read in its source: gradients are read, weights and two moments are read and written",
)
FUSED_MOMENTUM_TENSORS = measured(
    "FUSED_MOMENTUM_TENSORS",
    5,
    unit="tensors",
    device="any device",
    how="read in its source: gradients are read, weights and one moment are read and written",
)
LIGHTEST_PASS_TENSORS = measured(
    "LIGHTEST_PASS_TENSORS",
    2,
    unit="tensors",
    device="any device",
    how="read in its source: the lightest pass of an optimizer reads one tensor and writes it",
)
ADDED_ROWS_TENSORS = measured(
    "ADDED_ROWS_TENSORS",
    3,
    unit="tensors",
    device="any device",
    how="specified by what the update computes: rows of a batch are read, and those of the table read and written",
)
PLAIN_UPDATE_TENSORS = measured(
    "PLAIN_UPDATE_TENSORS",
    4,
    unit="tensors",
    device="any device",
    how="specified by what the update computes: zeros for the gradient are written, and it is read; the table is read and written",
)
STATE_TENSORS = measured(
    "STATE_TENSORS",
    2,
    unit="tensors",
    device="any device",
    how="specified by what the update computes: an array of the optimizer is read and written",
)
SMOOTH_FFT_LEAST = measured(
    "SMOOTH_FFT_LEAST",
    0.17,
    unit="share of the time of Bluestein's algorithm",
    device="any device",
    how=CHOSEN
    + "; counted: two transforms of at least twice the length, three passes through memory each, against two passes of the length itself",
    seen="0.25 in one job on an H200: 1,600 real rows of 71,999 and of 72,000; 0.2 in the documentation of RustFFT",
)
SMOOTH_FFT_MOST = measured(
    "SMOOTH_FFT_MOST",
    0.33,
    unit="share of the time of Bluestein's algorithm",
    device="any device",
    how=CHOSEN + "; counted: the same, against four passes",
    seen="0.25 in one job on an H200: 1,600 real rows of 71,999 and of 72,000; 0.2 in the documentation of RustFFT",
)
FFT_RADIX_MOST = measured(
    "FFT_RADIX_MOST",
    127,
    unit="largest prime factor",
    device="cuFFT",
    how="specified in its documentation: larger ones take Bluestein's algorithm",
)
FFT_FAST_FACTOR = measured(
    "FFT_FAST_FACTOR",
    7,
    unit="largest prime factor",
    device="cuFFT",
    how="specified in its documentation: the best lengths are products of powers of 2, 3, 5 and 7",
)

# Of the memory's bandwidth, counting a row of the other matrix for each entry that is not zero.
_SPARSE_UNIT = "share of the memory's bandwidth"
_SPARSE_HOW = (
    "gains of jobs of blind trials with a dense adjacency matrix, less what their other kernels take"
)
SPARSE_READ_SLOWLY = measured(
    "SPARSE_READ_SLOWLY",
    0.55,
    unit=_SPARSE_UNIT,
    device="H200, PyTorch 2.11 and JAX 0.11",
    how=_SPARSE_HOW + ", and kernels of a job that multiplies by CSR matrices",
    when="2026-11-18",
    seen="cuSPARSE's CSR products 0.6 with a matrix of 77 MB, segment_sum 0.60, 0.70, 0.80 and 0.81 with 18 to 34 MB",
)
SPARSE_READ_FAST = measured(
    "SPARSE_READ_FAST",
    1.9,
    unit=_SPARSE_UNIT,
    device="H200, PyTorch 2.11",
    how=_SPARSE_HOW,
    when="2026-11-18",
    seen="1.7 by CSR products with a matrix of 31 MB, which stays in the cache",
)
SPARSE_SUMMED_FAST = measured(
    "SPARSE_SUMMED_FAST",
    0.85,
    unit=_SPARSE_UNIT,
    device="H200, JAX 0.11",
    how=_SPARSE_HOW,
    when="2026-11-18",
    seen="0.60, 0.70, 0.80 and 0.81 by segment_sum over sorted indices, with matrices of 18 to 34 MB",
)
SPARSE_TRAINED_FAST = measured(
    "SPARSE_TRAINED_FAST",
    0.7,
    unit=_SPARSE_UNIT,
    device="H200, PyTorch 2.11",
    how="kernels of a job of a blind trial that multiplies by a symmetric CSR matrix in both passes",
    when="2026-11-18",
    seen="0.6 with a matrix of 77 MB",
)
SPARSE_TRAINED_SLOWLY = measured(
    "SPARSE_TRAINED_SLOWLY",
    0.06,
    unit=_SPARSE_UNIT,
    device="H200, PyTorch 2.11",
    how=_SPARSE_HOW,
    when="2026-11-18",
    seen="0.067 by index_add_ in the forward and backward pass, 0.086 and about 0.09 by torch.sparse.mm with coordinates",
)
