"""How a launch fills a device: blocks that fit on a multiprocessor at once, the occupancy they give, and the waves.

Blocks that fit = the least of what threads, registers, shared memory and the block slots of a multiprocessor allow.
Occupancy = min(blocks that fit, blocks per SM) x threads of a block / threads of an SM: an estimate, since it takes
blocks to be spread evenly. Waves per SM = blocks / (SMs x blocks that fit).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.lazy import dataclass

_REGISTER_UNIT = 256  # registers are handed out per warp in this unit since Volta
_SHARED_UNIT = 128
_RESERVED_SHARED = 1024  # the driver keeps this of each block since Ampere
_WARP = 32
_PARTITIONS = 4
# By compute capability: threads per SM, block slots per SM, bytes of shared memory per SM.
_BY_CAPABILITY: dict[tuple[int, int], tuple[int, int, int]] = {
    (7, 0): (2048, 32, 98304),
    (7, 2): (2048, 32, 98304),
    (7, 5): (1024, 16, 65536),
    (8, 0): (2048, 32, 167936),
    (8, 6): (1536, 16, 102400),
    (8, 7): (1536, 16, 167936),
    (8, 9): (1536, 24, 102400),
    (9, 0): (2048, 32, 233472),
    (10, 0): (2048, 32, 233472),
    (10, 3): (2048, 32, 233472),
    (11, 0): (1536, 24, 233472),
    (12, 0): (1536, 24, 102400),
    (12, 1): (1536, 24, 102400),
}


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor of a device offers; `count` of them make the device."""

    count: int
    threads: int
    slots: int
    shared_bytes: int
    registers: int
    reserved_shared: int


def capability(device: dict[str, Any]) -> tuple[int, int] | None:
    """The CUDA compute capability, as PyTorch or XLA record it; AMD's devices have none."""
    if "amd" in str(device.get("name", "")).lower() or device.get("warpSize") == 64:
        return None
    major = device.get("computeMajor", device.get("compute_cap_major"))
    minor = device.get("computeMinor", device.get("compute_cap_minor"))
    return (major, minor) if isinstance(major, int) and isinstance(minor, int) else None


def multiprocessors(device: dict[str, Any]) -> int | None:
    """How many multiprocessors (AMD: compute units) the device has."""
    count = device.get("numSms", device.get("core_count"))
    return count if isinstance(count, int) and count > 0 else None


def multiprocessor(device: dict[str, Any]) -> Multiprocessor | None:
    """The limits of an NVIDIA device; None for devices whose limits are not known."""
    known, count = capability(device), multiprocessors(device)
    if known is None or count is None or known not in _BY_CAPABILITY:
        return None
    threads, slots, shared = _BY_CAPABILITY[known]
    return Multiprocessor(
        count=count,
        threads=int(device.get("maxThreadsPerMultiprocessor") or threads),
        slots=slots,
        shared_bytes=int(device.get("sharedMemPerMultiprocessor") or shared),
        registers=int(device.get("regsPerMultiprocessor") or 65536),
        reserved_shared=_RESERVED_SHARED if known >= (8, 0) else 0,
    )


def fitting_blocks(sm: Multiprocessor) -> pl.Expr:
    """Blocks that fit on the multiprocessor at once, from `threads`, `registers` and `shared_bytes` of a launch."""
    warps = ((pl.col("threads") + _WARP - 1) // _WARP).clip(1)
    per_warp = _rounded(pl.col("registers").cast(pl.Int64) * _WARP, _REGISTER_UNIT).clip(1)
    shared = _rounded(pl.col("shared_bytes").cast(pl.Int64) + sm.reserved_shared, _SHARED_UNIT)
    by_shared = pl.when(shared > 0).then(sm.shared_bytes // shared.clip(1)).otherwise(sm.slots)
    by_registers = (
        sm.registers // _PARTITIONS // per_warp * _PARTITIONS // warps
    )  # each quarter of an SM has its own
    known = pl.col("registers").is_not_null() & pl.col("shared_bytes").is_not_null()
    limits = (pl.lit(sm.threads // _WARP) // warps, by_registers, by_shared, pl.lit(sm.slots))
    return pl.when(known).then(pl.min_horizontal(*limits))


def _rounded(amount: pl.Expr, unit: int) -> pl.Expr:
    return (amount + unit - 1) // unit * unit


def launch_columns(sm: Multiprocessor) -> list[pl.Expr]:
    """blocks_per_sm, waves_per_sm and occupancy (0 to 1) of launches with `blocks`, `threads`, `registers`, `shared_bytes`."""
    fit = fitting_blocks(sm)
    per_sm = pl.col("blocks") / sm.count
    fits = pl.when(fit > 0).then(fit)  # a launch that fits nowhere was described wrongly
    return [
        per_sm.alias("blocks_per_sm"),
        (pl.col("blocks") / (sm.count * fits)).alias("waves_per_sm"),
        (pl.min_horizontal(fits, per_sm) * pl.col("threads") / sm.threads).clip(0, 1).alias("occupancy"),
    ]
