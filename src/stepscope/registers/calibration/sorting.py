"""What a top-k takes in place of a sort."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_CPU = "two cores of an x86 CPU, shared with other work"
_RADIX = f"{CHOSEN}, from the way it works: a radix selection"
_TORCH = "torch.topk against torch.sort, PyTorch 2.13 with one thread, by processor time: rows of 256 to 1,000,000 numbers, 1 to 256 of them"
_XLA = "jax.lax.top_k against jnp.sort and jnp.argsort, jax 0.10: 1 to 4096 rows of 512 to 1,000,000 numbers, k of 1 to n/8"
_WHEN = "2026-11-19"

TOP_K_PASSES_BEST = measured(
    "TOP_K_PASSES_BEST",
    3,
    unit="passes over the keys at memory bandwidth",
    device="any GPU",
    how=f"{_RADIX} of 16-bit keys with 8 bits a pass reads them twice, and once more to gather",
)
TOP_K_PASSES_WORST = measured(
    "TOP_K_PASSES_WORST",
    20,
    unit="passes over the keys at memory bandwidth",
    device="any GPU",
    how=f"{_RADIX} of 32-bit keys with 2 bits a pass reads them 16 times, and twice to gather; sorting what is left takes some more",
)
TOP_K_ROW_NS = measured(
    "TOP_K_ROW_NS",
    30_000,
    unit="ns",
    device="any GPU",
    how=f"{CHOSEN}: the 18 passes of one block over a row of up to a few thousand numbers, with barriers of about 1.5 µs each; two such blocks fit on a multiprocessor",
)
TOP_K_BLOCKS = measured(
    "TOP_K_BLOCKS",
    2,
    unit="rows at once on a multiprocessor",
    device="NVIDIA",
    how="specified: 2,048 threads of a multiprocessor, here in blocks of 1,024, as PyTorch launches them for long rows",
)
TOP_K_SHORTEST_BEST_NS = measured(
    "TOP_K_SHORTEST_BEST_NS",
    10_000,
    unit="ns",
    device="any GPU",
    how=CHOSEN + ": two small kernels, one that selects and one that sorts what is selected",
)
TOP_K_SHORTEST_WORST_NS = measured(
    "TOP_K_SHORTEST_WORST_NS",
    60_000,
    unit="ns",
    device="any GPU",
    how=CHOSEN + ": a dozen small kernels of 5 µs, as where several blocks share a row",
)
XLA_TOP_K_MOST = measured(
    "XLA_TOP_K_MOST",
    16,
    unit="entries of a row",
    device="any GPU",
    how="read in its source (topk_specializer of XLA): with more, lax.top_k is compiled to the same sort and slice (openxla/xla issue 25487); newer versions select up to 128 on NVIDIA's",
)
XLA_TOP_K_ROW = measured(
    "XLA_TOP_K_ROW",
    1024,
    unit="entries of a row",
    device="any GPU",
    how="read in its source (topk_specializer of XLA): shorter rows are sorted",
)
XLA_TOP_K_SHARE = measured(
    "XLA_TOP_K_SHARE",
    3,
    unit="× the time that a multiprocessor's share of the memory bandwidth takes for a row",
    device="any GPU",
    how=CHOSEN + ": one block selects from a row, however long it is",
)
HOST_TOP_K_FEW_BEST = measured(
    "HOST_TOP_K_FEW_BEST",
    0.03,
    unit="× the time of the sort",
    device=_CPU,
    how=f"{_TORCH}; up to 1/64 of a row kept",
    when=_WHEN,
    seen="0.032 to 0.141; with two threads on the loaded machine 0.003 to 0.25",
)
HOST_TOP_K_FEW_WORST = measured(
    "HOST_TOP_K_FEW_WORST",
    0.15,
    unit="× the time of the sort",
    device=_CPU,
    how="as HOST_TOP_K_FEW_BEST",
    when=_WHEN,
    seen="0.032 to 0.141; with two threads on the loaded machine 0.003 to 0.25",
)
HOST_TOP_K_BEST = measured(
    "HOST_TOP_K_BEST",
    0.1,
    unit="× the time of the sort",
    device=_CPU,
    how=f"{_TORCH}; 1/64 to 1/8 of a row kept",
    when=_WHEN,
    seen="0.17 to 0.32; with two threads on the loaded machine 0.01 to 0.34",
)
HOST_TOP_K_WORST = measured(
    "HOST_TOP_K_WORST",
    0.33,
    unit="× the time of the sort",
    device=_CPU,
    how="as HOST_TOP_K_BEST",
    when=_WHEN,
    seen="0.17 to 0.32; with two threads on the loaded machine 0.01 to 0.34",
)
HOST_XLA_TOP_K_BEST = measured(
    "HOST_XLA_TOP_K_BEST",
    0.001,
    unit="× the time of the sort",
    device=_CPU,
    how=_XLA,
    when=_WHEN,
    seen="0.0004 to 0.09, up to 0.02 for k of 1 or 10",
)
HOST_XLA_TOP_K_WORST = measured(
    "HOST_XLA_TOP_K_WORST",
    0.1,
    unit="× the time of the sort",
    device=_CPU,
    how=_XLA,
    when=_WHEN,
    seen="0.0004 to 0.09, up to 0.02 for k of 1 or 10",
)
