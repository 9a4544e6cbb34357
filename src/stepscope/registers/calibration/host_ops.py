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
