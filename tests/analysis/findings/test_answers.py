"""Results that a step of inference ends with."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.answers import answer_waits
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, steps
from tests.builders.inline import trace_of

# 380 µs of the host, then the device works for 500, of which the host waits 485 and reads a result.
_STEP = (
    "main  0  380  serve.py(3): prepare  python  -",
    *gemm(380, 500, 400),
    "main  395  15  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pinned)",
    "stream 7  900  5  Memcpy DtoH (Device -> Pinned)  copy  -",
    "main  412  495  cudaStreamSynchronize  runtime  -",
)


def _case(*rows: str, size: int = 4096) -> Case:
    trace = trace_of("\n".join([HEAD, *steps(*rows, count=4)]), framework="pytorch")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(size),
        direction=pl.lit("DtoH"),
        source=pl.lit("Device"),
        target=pl.lit("Pinned"),
    )
    made = case_of(trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold))
    return replace(made, workload=INFERENCE)


def test_a_wait_for_the_result_that_a_step_ends_with_stays() -> None:
    case = _case(*_STEP)
    assert answer_waits(case).sum() == 4
    found = {each.code: each for each in apply_rules(case)}
    assert found["device-sync"].class_ == "advice"
    assert found["device-sync"].speedup.high == 1
    assert "read a step behind" in found["device-sync"].detail
    assert "device-sync" not in case.changes


@pytest.mark.parametrize("case", [replace(_case(*_STEP), workload=TRAINING), _case(*_STEP, size=4)])
def test_a_wait_for_a_loss_need_not_be(case: Case) -> None:
    assert not answer_waits(case).any()
    found = {each.code: each for each in apply_rules(case)}
    assert found["device-sync"].speedup.low > 1.1


def test_an_array_is_a_result_where_nothing_says_what_the_job_does() -> None:
    """As where graphs hide most of the work."""
    case = replace(_case(*_STEP), workload=None)
    assert answer_waits(case).sum() == 4
    assert not answer_waits(replace(_case(*_STEP, size=4), workload=None)).any()


def test_a_wait_with_work_behind_it_is_inside_the_step() -> None:
    case = _case(*_STEP, *gemm(910, 60, 930))
    assert not answer_waits(case).any()
