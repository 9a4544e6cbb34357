"""Fourier transforms of an unlucky length."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.kernels.fft_length import fast_length, has_factor_above
from tests.analysis.findings.test_kernel_rules import ADD, found_in, op

BLUESTEIN = "void multi_bluestein_fft<125u,EPT<5u>,32u>"
REGULAR = "void regular_fft<125u,EPT<5u>,32u>"
ROWS = "[[200,8,71999],[],[],[]]"


def transform(kernel: str) -> list[str]:
    """A real transform: the first kernel packs the rows, the second transforms them; then other work."""
    first = op(10, "aten::_fft_r2c", kernel, ROWS, "float,ScalarList,Scalar,Scalar", 20, 600)
    packed = "void kernel_wrapper<&(void packR2C_kernel_Odd_impl<float>)>"
    second = [
        f"main  16  1  cudaLaunchKernel  runtime  {packed}  -  -",
        f"stream 7  620  100  {packed}  kernel  -  -  -",
    ]
    return [*first, *second, *op(30, "aten::mul", ADD, "[[40000000],[]]", "float", 720, 250)]


def test_a_prime_length_takes_the_long_way() -> None:
    found = found_in(*transform(BLUESTEIN))["fft-length"]
    assert found.evidence["length"] == 71999
    assert found.evidence["fast_length"] == 72000
    assert found.share == pytest.approx(0.7, abs=0.02)
    assert 1.7 < found.speedup.low < found.speedup.mid < found.speedup.high < 3.5


def test_other_transforms_are_no_finding() -> None:
    assert "fft-length" not in found_in(*transform(REGULAR))


@pytest.mark.parametrize(
    ("length", "above", "fast"),
    [(71999, True, 72000), (262, True, 270), (1, False, 2), (1024, False, 1024), (127, False, 128)],
)
def test_factors(length: int, above: bool, fast: int) -> None:
    assert has_factor_above(length, 127) == above
    assert fast_length(length) == fast


def test_a_length_that_no_device_holds_takes_no_time() -> None:
    prime = 2**61 - 1
    assert has_factor_above(prime, 127)
    assert prime <= fast_length(prime) < 1.01 * prime
