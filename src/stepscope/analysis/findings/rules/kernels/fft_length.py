"""Fourier transforms whose length has a large prime factor, which take the way of Bluestein."""

from __future__ import annotations

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import (
    FFT_FAST_FACTOR,
    FFT_RADIX_MOST,
    SMOOTH_FFT_LEAST,
    SMOOTH_FFT_MOST,
)

# As cuFFT and rocFFT name its kernels.
_BLUESTEIN = r"(?i)bluestein|chirp"
# Real transforms of an odd length also pack and unpack their rows: an even length needs none of it.
_ODD_LENGTH = r"pack\w+_Odd|^void (pre|post)process_kernel<"
_TRANSFORM = r"^aten::_fft_(r2c|c2c)"


def find(case: Case) -> Finding | None:
    """The kernels' names prove it; the shapes of their op name the length, where they have it."""
    names = case.trace.events["name"].gather(case.compute.kernels["event"]).cast(pl.String)
    kernels = case.compute.kernels.select("event", "time_ns").with_columns(
        slow=names.str.contains(_BLUESTEIN), odd=names.str.contains(_ODD_LENGTH)
    )
    kernels = kernels.join(case.trace.kernels.select("event", call="op"), on="event", how="left")
    calls = kernels.filter(pl.col("slow"))["call"].drop_nulls().unique()
    mine = pl.col("slow") | (pl.col("odd") & pl.col("call").is_in(calls.implode()))
    chosen = kernels.filter(mine, pl.col("time_ns") > 0).select(
        "event", least=pl.lit(SMOOTH_FFT_LEAST), most=pl.lit(SMOOTH_FFT_MOST)
    )
    if chosen.is_empty():
        return None
    why, evidence = (
        "is spent in Fourier transforms whose length has a large prime factor: each is computed as two of twice the length.",
        {},
    )
    length = _length(case, calls)
    if length:
        evidence = {"length": length, "fast_length": fast_length(length)}
        why += f" Beside {length:,}, {evidence['fast_length']:,} has small factors only."
    return of_kernels(case, RULE, chosen, why, evidence=evidence)


def _length(case: Case, calls: pl.Series) -> int | None:
    """The largest side with a large prime factor that these transforms get."""
    ops = case.ops.filter(
        pl.col("event").is_in(calls.implode()), pl.col("name").cast(pl.String).str.contains(_TRANSFORM)
    )
    texts = ops["shapes"].cast(pl.String).unique().drop_nulls()
    sides = {side for text in texts for shape in _shapes(text)[:1] for side in shape}
    return max((side for side in sides if has_factor_above(side, FFT_RADIX_MOST)), default=None)


def _shapes(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []


def has_factor_above(length: int, most: int) -> bool:
    """Whether a prime factor is larger; small ones are divided out, so that no length in a file takes long."""
    for factor in range(2, most + 1):
        while length > 1 and length % factor == 0:
            length //= factor
    return length > 1


def fast_length(length: int) -> int:
    """The next even length with small factors alone, built from these."""
    found, most = {1}, 2 * length
    for factor in range(2, FFT_FAST_FACTOR + 1):
        for known in sorted(found):
            while known * factor <= most:
                known *= factor
                found.add(known)
    return min(2 * each for each in found if 2 * each >= length)


RULE: Rule[Case] = Rule(
    code="fft-length",
    title="Fourier transforms have a length with a large prime factor",
    turn=171,
    page="kernels",
    owns="kernels of Bluestein's algorithm, by name, and those that pack real rows of odd length in the same op",
    change="17 to 33 % of their time remains",
    fix={
        "pytorch": "Pad to a length with small factors (2, 3, 5, 7), as scipy.fft.next_fast_len gives it, and crop the result: torch.fft.rfft(x, n=fast). A correlation or convolution may be longer than it needs to be; a spectrum changes its bins.",
        "jax": "Pad to a length with small factors (2, 3, 5, 7), as scipy.fft.next_fast_len gives it, and crop the result: jnp.fft.rfft(x, n=fast). A correlation or convolution may be longer than it needs to be; a spectrum changes its bins.",
        ANY: "Pad to a length with small factors (2, 3, 5, 7) and crop the result. A correlation or convolution may be longer than it needs to be; a spectrum changes its bins.",
    },
    find=find,
    needs_device=True,
)
