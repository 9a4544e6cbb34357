"""Communication that no computation overlaps."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE
from tests.builders.cases import case_of_text, gemm, steps

REDUCES = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
EXCHANGES = "ncclDevKernel_SendRecv"
BACKWARD = "main  10  15  autograd::engine::evaluate_function:AddmmBackward0  op  -"
TRAINS = re.compile(r"gradient|DDP|FSDP|backward")


def message(begin: int, length: int, name: str = REDUCES, stream: int = 7) -> list[str]:
    """On the stream that computes, since it sends what that has made, or on one of its own; launched long before it begins."""
    return [
        f"main  30  5  cudaLaunchKernelExC  runtime  {name}",
        f"stream {stream}  {begin}  {length}  {name}  kernel  -",
    ]


def waiting(*rows: str) -> list[str]:
    """Steps in which the host launches all of this and then waits for it."""
    return steps(*rows, "main  40  950  cudaStreamSynchronize  runtime  -")


def found_in(case: Case) -> Finding:
    (found,) = RULE.findings(case)
    return found


def test_no_more_is_hidden_than_there_is_computation() -> None:
    """A step of 1000 µs has 200 µs of computation and 700 of communication: with all of the first hidden, 800 are left."""
    found = found_in(case_of_text(waiting(*gemm(0, 200), *message(220, 700))))
    assert found.class_ == "time"
    assert found.share == pytest.approx(0.7, abs=0.02)
    assert 1.1 < found.speedup.mid <= found.speedup.high < 1000 / 700
    assert "can be hidden" in found.detail


def test_what_hides_a_message_already_hides_no_other() -> None:
    """Of 600 µs of computation 550 run while the first message is sent; the second one has 50 left."""
    overlapped = [*message(40, 550, stream=20), *gemm(0, 600, 10)]
    found = found_in(case_of_text(waiting(*overlapped, *message(620, 370))))
    alone = found_in(case_of_text(waiting(*gemm(0, 600, 10), *message(620, 370))))
    assert found.speedup.high < 1.2 < 1.4 < alone.speedup.high
    assert "can be hidden" not in alone.detail


def test_half_of_it_is_hidden_at_worst_where_computation_abounds() -> None:
    found = found_in(case_of_text(waiting(*gemm(0, 650, 10), *message(670, 320))))
    assert 1.1 < found.speedup.low < 1.25 < found.speedup.high <= 1 / 0.67


def test_a_step_that_does_nothing_else_gets_advice_to_send_less() -> None:
    """Two messages through the host, and no device."""
    lines = steps(
        "gloo  0  500  gloo:all_reduce  annotation  -", "gloo  500  490  gloo:all_reduce  annotation  -"
    )
    alone = replace(case_of_text(lines), device=None)
    alone.trace.info.devices.clear()
    found = found_in(alone)
    assert (found.class_, found.speedup.high) == ("advice", 1.0)
    assert RULE.code not in alone.changes
    assert "hardly anything else" in found.detail
    assert "Communicate less often" in found.fix and not TRAINS.search(found.fix)


@pytest.mark.parametrize(
    ("rows", "workload", "advice"),
    [
        ([*message(420, 550), BACKWARD], None, "bucket_cap_mb"),
        (message(420, 550), "training", "bucket_cap_mb"),
        (message(420, 550), None, "async_op=True"),
        (message(420, 550), "inference", "all-reduce kernels"),
        (message(420, 550, EXCHANGES), None, "in pieces"),
        (message(420, 550, EXCHANGES), "inference", "in pieces"),
        ([*message(420, 550, EXCHANGES), BACKWARD], None, "in pieces"),
    ],
)
def test_advice_is_of_what_sends_the_messages(rows: list[str], workload: str | None, advice: str) -> None:
    case = replace(case_of_text(waiting(*gemm(0, 400), *rows)), workload=workload)
    found = found_in(case)
    assert advice in found.fix
    assert bool(TRAINS.search(found.fix)) == (advice == "bucket_cap_mb")
