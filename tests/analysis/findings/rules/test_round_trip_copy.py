"""Large results that the host computes on: what goes when the device does that instead."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Interval
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, step
from tests.builders.inline import trace_of

_STEP_US = 8000
_WRAPPER, _OF_THE_JOB = "torch/utils/_contextlib.py(120): decorate_context", "server.py(9): handle"


def _left(caller: str, mask_us: int = 10) -> Interval:
    """Steps of 8 ms: a result is copied, masked and searched for 4 ms, and the function's caller takes 2 ms after it has returned."""
    lines = [HEAD]
    for number in range(4):
        start = _STEP_US * number
        rows = [
            f"main  0  7900  {caller}  python  -",
            "main  10  5800  serve.py(7): answer  python  -",
            *gemm(20, 100),
            "main  60  1600  aten::copy_  op  -",
            "main  65  1590  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pageable)",
            "stream 7  155  1490  Memcpy DtoH (Device -> Pageable)  copy  -",
            f"main  1670  {mask_us}  serve.py(3): mask  python  -",
            "main  1900  3900  numpy/fromnumeric.py(48): argpartition  python  -",
        ]
        lines += [f"main  {start}  {_STEP_US}  ProfilerStep#{number}  annotation  -"]
        lines += step(number, start, *rows)[1:]
    trace = trace_of("\n".join(lines), framework="pytorch")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(64 << 20),
        direction=pl.lit("DtoH"),
        source=pl.lit("Device"),
        target=pl.lit("Pageable"),
    )
    case = case_of(trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold))
    found = {each.code: each for each in apply_rules(case)}["round-trip-copy"]
    assert found.left_ns_per_step is not None
    return found.left_ns_per_step


def test_memory_of_the_result_is_freed_by_a_wrapper_of_the_framework() -> None:
    """What the function held is freed when it returns, in the self time of the wrapper that called it: that goes as well."""
    assert _left(_WRAPPER).mid < 1_000_000


def test_what_a_caller_of_the_job_does_afterwards_stays() -> None:
    assert _left(_OF_THE_JOB).mid > 2_000_000


@pytest.mark.parametrize("mask_us", [20, 200])
def test_what_comes_before_the_search_may_go_with_it(mask_us: int) -> None:
    """A mask works on the large result, however short it is."""
    assert _left(_WRAPPER, mask_us).low < 500_000
