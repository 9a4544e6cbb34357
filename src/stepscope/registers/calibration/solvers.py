"""What factorisations and triangular solves take in place of an inverse.

A triangular solve of n rows with n right sides takes n³ operations, a Cholesky factorisation a third of them. Both go through the rows
one after the other, so that each row costs something whatever the number of right sides.
"""

from __future__ import annotations

from stepscope.registers.entry import measured

_DEVICE = "H200"
_WHEN = "2026-11-19"
_HOW = "compiled programs of JAX 0.11 that run one after the other, in fp32 with 512 to 12,288 rows, in fp64 with 2,048 and 6,144"
_ROW = f"{_HOW}: what is left of the time beside its operations, at the pace of a solve with as many right sides as rows"

CHOLESKY_ROW_BEST_NS = measured(
    "CHOLESKY_ROW_BEST_NS", 270, unit="ns a row", device=_DEVICE, how=_ROW, when=_WHEN, seen="250–460"
)
CHOLESKY_ROW_WORST_NS = measured(
    "CHOLESKY_ROW_WORST_NS", 460, unit="ns a row", device=_DEVICE, how=_ROW, when=_WHEN, seen="250–460"
)
CHOLESKY_OPERATIONS = measured(
    "CHOLESKY_OPERATIONS",
    1 / 3,
    unit="operations of a solve with as many right sides as rows",
    device="any",
    how="counted: n³/3 of n³",
    when=_WHEN,
)
SOLVE_ROW_BEST_NS = measured(
    "SOLVE_ROW_BEST_NS", 250, unit="ns a row", device=_DEVICE, how=_ROW, when=_WHEN, seen="250–320"
)
SOLVE_ROW_WORST_NS = measured(
    "SOLVE_ROW_WORST_NS", 320, unit="ns a row", device=_DEVICE, how=_ROW, when=_WHEN, seen="250–320"
)
SOLVE_VECTOR_ROW_BEST_NS = measured(
    "SOLVE_VECTOR_ROW_BEST_NS",
    85,
    unit="ns a row",
    device=_DEVICE,
    how=f"{_HOW}, with one right side",
    when=_WHEN,
    seen="81–119",
)
SOLVE_VECTOR_ROW_WORST_NS = measured(
    "SOLVE_VECTOR_ROW_WORST_NS",
    120,
    unit="ns a row",
    device=_DEVICE,
    how=f"{_HOW}, with one right side",
    when=_WHEN,
    seen="81–119",
)
SOLVE_BLOCK_LEAST = measured(
    "SOLVE_BLOCK_LEAST",
    32,
    unit="right sides",
    device=_DEVICE,
    how=f"{_HOW}: from there on a row costs what it does with many more; with 2 to 31 nothing was measured",
    when=_WHEN,
)
CHOLESKY_OF_LU_BEST = measured(
    "CHOLESKY_OF_LU_BEST",
    0.14,
    unit="share of the time of an LU decomposition",
    device=_DEVICE,
    how=f"{_HOW}; and PyTorch with 1,024 to 8,192: pivoting takes more than the operations",
    when=_WHEN,
    seen="0.146–0.286",
)
CHOLESKY_OF_LU_WORST = measured(
    "CHOLESKY_OF_LU_WORST",
    0.3,
    unit="share of the time of an LU decomposition",
    device=_DEVICE,
    how=f"{_HOW}; and PyTorch with 1,024 to 8,192",
    when=_WHEN,
    seen="0.146–0.286",
)
