"""Waits of the host by what they are for: copies either way, exchanges, numbers that a loop acts on."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.host.device_sync import find as find_waits
from stepscope.analysis.findings.rules.host.device_sync import without_waits
from stepscope.analysis.findings.rules.host.launch_bound import find as find_launches
from stepscope.analysis.findings.rules.host.unbatched_loop import reading
from stepscope.analysis.findings.transfers.waits import acts_on_values, ended_by_exchanges, mostly_waits_for
from stepscope.native.host import replay as native
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, steps
from tests.builders.inline import trace_of
from tests.builders.jobs.bodies import BODIES, in_body

TO_HOST, TO_DEVICE = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"
NCCL = "ncclDevKernel_SendRecv"


def copied(at: int, name: str, op: str = "aten::copy_", waits: int = 40) -> list[str]:
    """An op that copies and waits until the copy is done."""
    return [
        f"main  {at}  {waits + 14}  {op}  op  -",
        f"main  {at + 2}  5  cudaMemcpyAsync  runtime  {name}",
        f"stream 7  {at + 8}  2  {name}  copy  -",
        f"main  {at + 10}  {waits}  cudaStreamSynchronize  runtime  -",
    ]


def case_with_copies(*rows: str, kind: str = "function") -> Case:
    lines = in_body(kind, steps(*rows, count=4))
    trace = trace_of("\n".join([HEAD, *lines]), framework="pytorch")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(4),
        direction=pl.col("name").cast(pl.String).str.extract("(HtoD|DtoH)"),
        source=pl.lit("Pageable"),
        target=pl.lit("Pageable"),
    )
    return case_of(trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold))


def waits_of(case: Case) -> pl.DataFrame:
    return case.slices.filter(pl.col("part") == "sync")


READ = copied(200, TO_HOST, op="aten::_local_scalar_dense")
SENT = copied(400, TO_DEVICE)


@pytest.mark.parametrize(
    ("rows", "direction"),
    [
        ([*gemm(0, 20), *SENT, *gemm(600, 300)], "HtoD"),
        ([*gemm(0, 20), *READ, *gemm(600, 300)], "DtoH"),
        ([*gemm(0, 20), *READ, *SENT, *gemm(600, 300)], None),
    ],
)
def test_the_direction_of_the_copies_that_are_waited_for(rows: list[str], direction: str | None) -> None:
    case = case_with_copies(*rows)
    assert mostly_waits_for(case, waits_of(case)) == direction


def test_copies_to_the_device_are_to_be_pinned() -> None:
    found = find_waits(case_with_copies(*gemm(0, 20), *copied(200, TO_DEVICE, waits=300), *gemm(600, 300)))
    assert found is not None and "copies to the device" in found.detail
    assert "pin_memory" in found.fix and ".item()" not in found.fix


def test_values_are_to_be_read_less_often() -> None:
    found = find_waits(case_with_copies(*gemm(0, 20), *copied(200, TO_HOST, waits=300), *gemm(600, 300)))
    assert found is not None and ".item()" in found.fix


@pytest.mark.parametrize(
    ("rows", "acts"),
    [
        ([*READ, *SENT], True),
        ([*copied(200, TO_HOST), *SENT], False),  # sizes, say
        ([*copied(0, TO_DEVICE), *READ], False),  # a batch, and the loss
    ],
)
def test_a_loop_acts_on_numbers_that_it_reads_before_it_sends(rows: list[str], acts: bool) -> None:
    assert acts_on_values(case_with_copies(*rows, *gemm(600, 300))) == acts


def acting(waits: int) -> Case:
    """Four times in a step: send what is seen, a short op, read what to do."""
    rows = []
    for at in range(0, 880, 220):
        rows += copied(at, TO_DEVICE, waits=waits)
        rows += gemm(at + 110, 2)
        rows += copied(at + 125, TO_HOST, op="aten::_local_scalar_dense", waits=waits)
    return case_with_copies(*rows)


def test_what_makes_the_values_that_a_loop_acts_on_stays() -> None:
    case = acting(60)
    found = find_waits(case)
    assert found is not None and found.fix.startswith("Read several values at once")
    plan = without_waits(case).largest
    kernels = case.trace.events.filter(pl.col("kind") == "kernel")["id"]
    mine = plan.items.filter(pl.col("event").is_in(kernels.implode()))
    assert len(mine) == 16 and (mine["device_ns"] > 0).all()


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("is_sent", [True, False])
def test_a_loop_that_acts_on_each_value_cannot_read_them_once(kind: str, is_sent: bool) -> None:
    """One environment, a turn for each of its steps: what the model says decides what it is given next."""
    rows = ["main  0  990  play.py(5): rollout  python  -"]
    for at in range(0, 990, 110):
        rows += copied(at, TO_DEVICE, waits=10) if is_sent else []
        rows += [*gemm(at + 30, 2), *copied(at + 45, TO_HOST, op="aten::_local_scalar_dense", waits=40)]
    case = case_with_copies(*rows, kind=kind)
    found = find_waits(case)
    assert found is not None and len(reading(case, case.loops)) == 4
    assert ("read them once" in found.detail) != is_sent
    assert ("acts on the values" in found.detail) == is_sent


def test_launches_between_such_values_are_to_be_made_fewer_by_a_batch() -> None:
    rows = []
    for at in range(0, 990, 90):
        rows += [*copied(at, TO_DEVICE, waits=3), *gemm(at + 20, 2), *gemm(at + 35, 2)]
        rows += copied(at + 50, TO_HOST, op="aten::_local_scalar_dense", waits=3)
        rows += [f"main  {at + 68}  20  aten::add  op  -"]
    found = find_launches(case_with_copies(*rows))
    assert found is not None and found.class_ == "advice"
    assert found.fix.startswith("Read several values at once")


def with_exchange(ns: int) -> Case:
    """The host waits for 400 µs, of which the device communicates for so long and then computes."""
    return case_with_copies(
        f"main  0  8  cudaLaunchKernel  runtime  {NCCL}",
        f"stream 7  10  {ns}  {NCCL}  kernel  -",
        *gemm(12, 400 - ns, 12 + ns),
        "main  30  390  aten::copy_  op  -",
        "main  32  388  cudaStreamSynchronize  runtime  -",
        *gemm(500, 400),
    )


@pytest.mark.parametrize(("ns", "ended"), [(380, True), (100, False)])
def test_at_worst_a_wait_that_another_rank_ends_stays(ns: int, ended: bool) -> None:
    case = with_exchange(ns)
    assert ended_by_exchanges(case).any() == ended
    found = find_waits(case)
    assert found is not None
    change = case.changes["device-sync"]
    assert (change.smallest.items["kind"] == native.WAIT).any() == ended
    assert not (change.largest.items["kind"] == native.WAIT).any()
    assert ("when the last rank has come" in found.detail) == ended
