"""A device that is almost full, by accident or on purpose."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.rules.memory.memory_pressure import RULE
from stepscope.analysis.memory import DeviceMemory
from tests.builders.cases import case_of_text, gemm, steps

_GIB = 1 << 30


def _codes(peak: int, *rows: str) -> list[str]:
    case = case_of_text(steps(*gemm(100, 800), *rows))
    one = DeviceMemory(
        device=0, device_kind="gpu", source="allocator", peak_bytes=40 * _GIB, peak_at_ns=None, reserved_peak=peak * _GIB,
        capacity_bytes=80 * _GIB, timeline=pl.DataFrame(), at_peak=pl.DataFrame(), growth_bytes_per_step=0,
        never_freed_bytes=0, fragmentation=None, known_share=None, note="",
    )  # fmt: skip
    return [found.code for found in RULE.findings(replace(case, memory=[one]))]


def test_a_device_that_is_almost_full() -> None:
    assert _codes(76) == ["memory-pressure"]
    assert _codes(70) == []


@pytest.mark.parametrize("name", ["vllm::unified_attention", "sgl_kernel::rmsnorm", "trtllm::allreduce"])
def test_a_server_fills_it_on_purpose(name: str) -> None:
    assert _codes(76, f"main  950  10  {name}  op  -") == []
