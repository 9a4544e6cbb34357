"""Copies that nothing hides: to the device they can run ahead, but a result comes after what computes it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.copies.exposed_copy import RULE, find
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.native.host import replay as native
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, steps
from tests.builders.inline import trace_of

_TO_HOST, _TO_DEVICE = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"


def _copy(at: int, begin: int, length: int, name: str, waits: int) -> list[str]:
    """A copy, and a wait of the host until it is done."""
    return [
        f"main  {at}  5  cudaMemcpyAsync  runtime  {name}",
        f"stream 7  {begin}  {length}  {name}  copy  -",
        f"main  {at + 6}  {waits}  cudaStreamSynchronize  runtime  -",
    ]


def _case(*rows: str) -> Case:
    trace = trace_of("\n".join([HEAD, *steps(*rows, count=4)]), framework="pytorch")
    direction = pl.col("name").cast(pl.String).str.extract("(HtoD|DtoH)")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(100_000),
        direction=direction,
        source=pl.lit("Pageable"),
        target=pl.lit("Pageable"),
    )
    return case_of(trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold))


# 400 µs of Python, an upload of 100 µs that the host waits for, and a kernel of 400.
_UPLOADED = (
    "main  0  400  serve.py(3): prepare  python  -",
    *_copy(400, 410, 100, _TO_DEVICE, waits=105),
    *gemm(515, 400, 530),
)
# The host is at the end of the step before the kernel is, or reads its result.
_GOES_ON = "main  530  460  serve.py(9): log  python  -"
_READS = _copy(530, 930, 20, _TO_HOST, waits=415)


def _left(case: Case) -> Plan:
    """The step without what the copies cost at least."""
    if RULE.code not in case.changes:
        assert RULE.find(case) is not None
    return case.changes[RULE.code].smallest


def _waits(case: Case) -> list[int]:
    """How many waits are left behind each copy."""
    kinds = _left(case).items["kind"].filter(case.plan.items["kind"] == native.WAIT)
    return [int(kind == native.WAIT) for kind in kinds]


def _beside(case: Case) -> set[str]:
    """The copies that run on a stream of their own."""
    apart = _left(case).items["stream"] != case.plan.items["stream"]
    names = case.trace.events["name"].gather(case.plan.items["event"].filter(apart))
    return set(names.cast(pl.String).to_list())


def test_an_upload_runs_beside_the_rest() -> None:
    case = _case(*_UPLOADED, _GOES_ON)
    assert _waits(case) == 4 * [0]
    assert _beside(case) == {_TO_DEVICE}


def test_the_host_still_waits_for_a_result() -> None:
    """A result comes behind the kernel that computes it: Python of the next step does not run while the kernel does."""
    case = _case(*_UPLOADED, *_READS)
    assert _waits(case) == 4 * [0, 1]
    assert _left(case).step_ns() > 800_000
    assert _beside(case) == {_TO_DEVICE}


def test_a_wait_for_several_results_is_for_all_of_them() -> None:
    """And an array that nothing waits for is copied beside the rest."""
    another = _copy(530, 930, 10, _TO_HOST, waits=415)[:2]
    last = _copy(536, 940, 10, _TO_HOST, waits=410)
    assert _beside(_case(*_UPLOADED, *another, *last)) == {_TO_DEVICE}
    assert _beside(_case(*_UPLOADED, *another, _GOES_ON.replace("530", "540"))) == {_TO_DEVICE, _TO_HOST}


def test_a_wait_belongs_to_the_copy_right_before_it() -> None:
    """An upload behind a result runs ahead."""
    again = _copy(955, 962, 20, _TO_DEVICE, waits=25)
    assert _waits(_case(*_UPLOADED, *_READS, *again)) == 4 * [0, 1, 0]


_STAGED = ("main  380  18  H2D Dispatch  span  -", *_UPLOADED)
_ANOTHER = _copy(955, 962, 20, _TO_DEVICE, waits=25)


def test_the_input_of_an_answer_must_be_sent() -> None:
    """It cannot stay on the device, and whether it is there earlier nobody knows."""
    case = replace(_case(*_STAGED, *_READS), workload=INFERENCE)
    found = find(case)
    assert found is not None
    assert found.class_ == "advice"
    assert found.speedup.high == 1
    assert "known ahead" in (found.fix or "")
    assert RULE.code not in case.changes


@pytest.mark.parametrize(
    ("rows", "workload"),
    [
        ((*_STAGED, *_READS), TRAINING),  # the next batch is known
        ((*_STAGED, *_READS, *_ANOTHER), INFERENCE),  # one of both may be a table
        ((*_UPLOADED, *_READS), INFERENCE),  # from memory that can be pinned
    ],
)
def test_other_uploads_are_promised(rows: tuple[str, ...], workload: str) -> None:
    found = find(replace(_case(*rows), workload=workload))
    assert found is not None
    assert found.class_ == "time"
    assert found.speedup.high > 1.05


def _reduced(thread: str, *more: str) -> Case:
    """Gradients are sent through memory of the host: 100 µs to there, 300 by the network, 150 back, all on `thread`."""
    return _case(
        *gemm(0, 300),
        f"{thread}  310  600  gloo:all_reduce  op  -",
        f"main  312  6  cudaMemcpyAsync  runtime  {_TO_HOST}",
        f"stream 7  320  100  {_TO_HOST}  copy  -",
        f"{thread}  730  5  cudaMemcpyAsync  runtime  {_TO_DEVICE}",
        f"stream 7  740  150  {_TO_DEVICE}  copy  -",
        "main  310  640  c10d::allreduce_  op  -",
        *more,
    )


def test_copies_of_a_message_are_communication() -> None:
    case = _reduced("gloo")
    codes = [found.code for found in apply_rules(case)]
    assert "exposed-copy" not in codes
    found = next(found for found in apply_rules(_reduced("gloo")) if found.code == "exposed-collective")
    assert "250 µs are copies through memory of the host" in found.detail
    assert found.share > 0.5


@pytest.mark.parametrize(
    "more", [(), ("main  5  3  autograd::engine::evaluate_function:AddmmBackward0  op  -",)]
)
def test_what_is_on_a_device_is_for_nccl_to_send(more: tuple[str, ...]) -> None:
    found = next(
        found for found in apply_rules(_reduced("gloo", *more)) if found.code == "exposed-collective"
    )
    assert "NCCL instead of gloo" in found.fix
    assert ("backward pass" in found.fix) == bool(more)


def test_what_is_in_memory_of_the_host_is_not() -> None:
    rows = ["gloo  310  600  gloo:all_reduce  op  -", "main  310  640  c10d::allreduce_  op  -"]
    found = next(
        found for found in apply_rules(_case(*gemm(0, 300), *rows)) if found.code == "exposed-collective"
    )
    assert "NCCL" not in found.fix


def test_other_copies_beside_a_message_are_not() -> None:
    """The thread that copies is not the one that sends."""
    rows = [
        *gemm(0, 200),
        "gloo  205  50  gloo:all_reduce  op  -",
        *_copy(310, 320, 400, _TO_DEVICE, waits=410),
    ]
    assert "exposed-copy" in [found.code for found in apply_rules(_case(*rows))]
