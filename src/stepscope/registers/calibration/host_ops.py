"""What ops on a CPU take after a change: attention, products with zeros, and broadcasts."""

from __future__ import annotations

from stepscope.registers.entry import measured

_HOST_ATTENTION = "forward, and forward with backward, of products and softmax against scaled_dot_product_attention, causal or not, in fp32 on one core (torch 2.13), processor time"
HOST_ATTENTION_BEST = measured(
    "HOST_ATTENTION_BEST",
    0.45,
    unit="× the time of separate ops, on a CPU",
    device="x86 core",
    how=_HOST_ATTENTION,
    when="2026-11-19",
    seen="lengths 256 to 512: 0.45 to 0.76",
)
HOST_ATTENTION_WORST = measured(
    "HOST_ATTENTION_WORST",
    0.9,
    unit="× the time of separate ops, on a CPU",
    device="x86 core",
    how=_HOST_ATTENTION,
    when="2026-11-19",
    seen="lengths 64 to 128: 0.65 to 1.07, so that 256 is the least length of which anything is said",
)
HOST_LONG_ATTENTION_BEST = measured(
    "HOST_LONG_ATTENTION_BEST",
    0.18,
    unit="× the time of separate ops, on a CPU",
    device="x86 core",
    how=_HOST_ATTENTION,
    when="2026-11-19",
    seen="length 1024, whose scores leave the cache: 0.18 to 0.35",
)
HOST_LONG_ATTENTION_WORST = measured(
    "HOST_LONG_ATTENTION_WORST",
    0.45,
    unit="× the time of separate ops, on a CPU",
    device="x86 core",
    how=_HOST_ATTENTION,
    when="2026-11-19",
)
HOST_SPARSE_ENTRY_FAST = measured(
    "HOST_SPARSE_ENTRY_FAST",
    5.0,
    unit="× the time of an entry of a dense product, on a CPU",
    device="x86 core",
    how="products of seven graphs (1,500 to 5,000 nodes, 8 to 60 edges a node, 16 to 128 columns) as dense matrices, with compressed rows and with coordinates, forward and with backward (torch 2.13), processor time",
    when="2026-11-19",
    seen="compressed rows 4.5 to 12",
)
HOST_SPARSE_ENTRY_SLOWLY = measured(
    "HOST_SPARSE_ENTRY_SLOWLY",
    120.0,
    unit="× the time of an entry of a dense product, on a CPU",
    device="x86 core",
    how="as HOST_SPARSE_ENTRY_FAST",
    when="2026-11-19",
    seen="coordinates 59 to 146",
)
HOST_PAIRS_BEST = measured(
    "HOST_PAIRS_BEST",
    0.01,
    unit="× the time of a broadcast, its square and its sum, on a CPU",
    device="x86 core",
    how="squared distances of 500 to 2,000 vectors from 100 to 500, with 8 to 128 numbers each, as cdist or as a product (torch 2.13), processor time, forward and with backward",
    when="2026-11-19",
    seen="0.004 to 0.10",
)
HOST_PAIRS_WORST = measured(
    "HOST_PAIRS_WORST",
    0.1,
    unit="× the time of a broadcast, its square and its sum, on a CPU",
    device="x86 core",
    how="as HOST_PAIRS_BEST",
    when="2026-11-19",
    seen="0.004 to 0.10",
)
GENERATOR_CALL_NS = measured(
    "GENERATOR_CALL_NS",
    400_000,
    unit="ns of a sample that a Python generator hands to tf.data",
    device="CPU, 2 cores",
    how="PyFunc of Dataset.from_generator over rows and windows that are in memory, as recorded (TensorFlow 2.21)",
    when="2026-11-19",
    seen="290 and 370 µs in two jobs: what takes longer also computes, reads or decodes",
)
HOST_WEIGHT_BYTES_FAST = measured(
    "HOST_WEIGHT_BYTES_FAST",
    12.0,
    unit="bytes per ns",
    device="x86 core",
    how="nn.Linear of six sizes (192 × 576 to 1,024 × 8,000, fp32), six of each in turn, on one core, for one token of one sequence and of eight (torch 2.13), processor time",
    when="2026-11-19",
    seen="one sequence 4.7 to 8.0, with both cores busy; two cores read more",
)
HOST_WEIGHT_BYTES_SLOWLY = measured(
    "HOST_WEIGHT_BYTES_SLOWLY",
    3.0,
    unit="bytes per ns",
    device="x86 core",
    how="as HOST_WEIGHT_BYTES_FAST",
    when="2026-11-19",
    seen="eight sequences 2.1 to 4.1",
)
HOST_TOKEN_OP_LEAST_NS = measured(
    "HOST_TOKEN_OP_LEAST_NS",
    4_000,
    unit="ns",
    device="x86 core",
    how="layer_norm, gelu and a sum of one token (192 and 8 × 256 numbers) on one core (torch 2.13), processor time",
    when="2026-11-19",
    seen="sums 3.6 and 4.7 µs",
)
HOST_TOKEN_OP_MOST_NS = measured(
    "HOST_TOKEN_OP_MOST_NS",
    30_000,
    unit="ns",
    device="x86 core",
    how="as HOST_TOKEN_OP_LEAST_NS",
    when="2026-11-19",
    seen="layer_norm 21 and 23 µs, gelu 29 and 35 µs, with their modules",
)
HOST_RECURRENT_CALL_MOST = measured(
    "HOST_RECURRENT_CALL_MOST",
    0.33,
    unit="× the time of a call over a whole sequence",
    device="x86 core",
    how="nn.LSTM of two layers (64 inputs, 256 states, fp32, four sequences of 40 to 60 time steps) called for one time step in inference, which brings the weights into another order first (torch 2.13), processor time",
    when="2026-11-19",
    seen="0.28",
)
STACKED_SLICE_HOST_LEAST = measured(
    "STACKED_SLICE_HOST_LEAST",
    0.1,
    unit="× what the host takes for the gradient of one slice",
    device="x86 core",
    how="backward passes through 3 to 512 selects of one small tensor, and through one unbind (torch 2.13), shortest of 60",
    when="2026-11-19",
    seen="to stack one more piece takes 2 to 7 µs, a select's gradient 19 to 27 µs",
)
STACKED_SLICE_HOST_MOST = measured(
    "STACKED_SLICE_HOST_MOST",
    0.35,
    unit="× what the host takes for the gradient of one slice",
    device="x86 core",
    how="as STACKED_SLICE_HOST_LEAST",
    when="2026-11-19",
    seen="8 to 128 slices: 0.33 to 0.37 of the time, beside one gradient's",
)
UNFOLDED_WORST = measured(
    "UNFOLDED_WORST",
    0.3,
    unit="× the time of the gradients of slices that overlap, on a CPU",
    device="x86 core",
    how="backward passes through windows of 8 to 32 places at distances of 1 to 8, stacked slices against unfold (torch 2.13), shortest of 5 to 30",
    when="2026-11-19",
    seen="57 to 481 windows: 0.16 to 0.27; 13 windows of 8,000 elements: 0.97",
)
_BARRIERS = "250 against 50 additions with a barrier between them in one compiled program, and single additions, of 8 to 100,000 numbers (JAX 0.10)"
FUSED_HOST_OP_NS = measured(
    "FUSED_HOST_OP_NS",
    1_000,
    unit="ns an op",
    device="x86 core",
    how=_BARRIERS,
    when="2026-11-19",
    seen="0.1 to 0.5 µs up to 1,000 numbers in one program; 43 to 64 µs by itself; a turn of a scan 0.9 to 3.2 µs",
)
HOST_BYTES_PER_NS = measured(
    "HOST_BYTES_PER_NS",
    4.0,
    unit="bytes per ns",
    device="x86 core",
    how=_BARRIERS + "; chosen below them, as for arrays that leave the cache",
    when="2026-11-19",
    seen="32 to 50 in the cache",
)
