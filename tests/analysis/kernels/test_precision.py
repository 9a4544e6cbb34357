"""Shares of compute time by number format."""

from __future__ import annotations

import pytest

from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.kernels.precision import precision_shares, precision_times
from tests.builders.gpu_trace import gpu_trace

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"


def test_shares() -> None:
    """Collectives are no compute; what only moves data is."""
    calls = kernel_calls(
        gpu_trace(f"""
        stream 7 |   0 | 50 | kernel | nvjet_sm90_tst_256x128_64x4_1x2_h_bz_TNT
        stream 7 |  50 | 20 | kernel | {ADD}
        stream 7 |  70 | 20 | kernel | volta_sgemm_128x64_nn
        stream 7 |  90 | 10 | kernel | my_kernel
        stream 7 | 100 | 99 | kernel | ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)
        """)
    )
    found = precision_shares(precision_times(calls))
    assert found.shares == pytest.approx({"fp32": 0.4, "bf16": 0.5, "unknown": 0.1})
    assert list(found.shares) == ["fp32", "bf16", "unknown"]
    assert (found.tensor_core_share, found.eligible_share) == pytest.approx((0.5, 0.7))
    assert found.unknown_share == pytest.approx(0.1)


def test_nothing_known_is_not_zero() -> None:
    """Where no name tells, the share of tensor cores is unknown."""
    found = precision_shares(
        precision_times(kernel_calls(gpu_trace("stream 7 | 0 | 5 | kernel | my_kernel")))
    )
    assert found.tensor_core_share is None
    assert found.eligible_share is None
    assert found.unknown_share == 1.0


def test_no_kernels() -> None:
    """Nothing to share out."""
    found = precision_shares(precision_times(kernel_calls(gpu_trace("host | 0 | 5 | op | aten::add"))))
    assert (found.shares, found.tensor_core_share) == ({}, None)
