"""Dense gradients of embedding tables: on a CPU ops fill and update them by themselves, on a device the launches count as well."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.kernels.dense_embedding_gradient import RULE
from stepscope.registers.calibration.kernels import (
    SPARSE_ADAGRAD_HOST_NS,
    SPARSE_ADAM_HOST_NS,
    SPARSE_SGD_HOST_NS,
)
from tests.analysis.compute.traces import compute_trace
from tests.analysis.findings.rules.host_training import (
    ENGINE,
    Call,
    backward,
    case_of_calls,
    forward,
    gradient,
    optimizer,
)
from tests.builders.cases import case_of

TABLE, ROWS = "[500000,64]", 500000


def lookup(batch: int = 1024) -> Call:
    return Call("aten::embedding", 20, f"[{TABLE},[{batch}]]", sequence="1")


def dense_backward(fill: int, batch: int = 1024) -> Call:
    zeros = Call("aten::fill_", fill, f"[{TABLE},[]]")
    op = Call(
        "aten::embedding_dense_backward",
        10,
        f"[[{batch},64],[{batch}],[],[],[]]",
        inputs=f'["","","{ROWS}","-1","False"]',
        inside=(zeros,),
    )
    return Call(f"{ENGINE} EmbeddingBackward0", 1, sequence="1", inside=(op,))


def training(*updates: Call, batch: int = 1024, head: str = "[[1024,64],[64,256]]") -> tuple[Call, ...]:
    around = (backward(60), gradient("[256,64]"), dense_backward(150, batch), gradient(TABLE))
    return (lookup(batch), forward(60, head), *around, optimizer(*updates))


def add(length: int, shapes: str = f"[{TABLE},{TABLE},[]]") -> Call:
    return Call("aten::add_", length, shapes)


def test_a_table_that_the_optimizer_updates_as_a_whole() -> None:
    found = {
        each.code: each for each in apply_rules(case_of_calls(*training(add(400), add(5, "[[256,64]]"))))
    }
    assert "host-python" not in found
    mine = found["dense-embedding-gradient"]
    assert mine.speedup.low < 1000 / 450 < mine.speedup.high
    assert "sparse=True" in mine.fix
    assert "0.20 % of the rows" in mine.detail


def test_a_list_of_tensors_counts_by_its_tables() -> None:
    fused = "aten::_fused_adam_"
    half = Call(fused, 400, f"[[{TABLE},[500000,64,1]],[]]")
    whole = Call(fused, 400, f"[[{TABLE}],[]]")
    (less,), (more,) = (RULE.findings(case_of_calls(*training(each))) for each in (half, whole))
    assert less.speedup.mid == pytest.approx(1 / (1 - 0.35), rel=0.02)
    assert more.speedup.mid == pytest.approx(1 / (1 - 0.55), rel=0.02)


@pytest.mark.parametrize(
    "steps",
    [
        training(add(400), batch=100000),
        training(add(400), head=f"[[1024,64],{TABLE}]"),
        training(add(400), head="[[1024,64],[64,500000]]"),
        (*training(add(20))[:2], dense_backward(100), optimizer(add(20))),
    ],
    ids=["most rows", "table of a head", "its transpose", "little time"],
)
def test_tables_that_need_dense_gradients(steps: tuple[Call, ...]) -> None:
    assert RULE.findings(case_of_calls(*steps)) == []


def updated_on_device(
    pieces: int, optimizer: str = "SGD", rows: int = 8192, times: int = 10, sorts: int = 0
) -> Finding:
    """Steps of 10 ms whose optimizer passes over a table for 8 ms, and takes 3 ms to launch that, in some pieces.

    `sorts`: so many kernels sort the rows for the gradient, which takes the host 0.05 ms each.
    """
    table = "[[10000000,64]]"
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs"]
    for number in range(3):
        at = 1000 * times * number
        lines += [
            f"main  {at}  {1000 * times}  ProfilerStep#{number}  annotation  -  -  -  -",
            f'main  {at + 10}  {8 + 50 * sorts}  aten::embedding_dense_backward  op  -  [[{rows},64],[{rows}],[],[],[]]  float,long  ["","","10000000"]',
            f"main  {at + 11}  5  cudaLaunchKernel  runtime  embedding_backward  -  -  -",
            f"stream 7  {at + 20}  {100 * times}  embedding_backward  kernel  -  -  -  -",
            f"main  {at + 30 + 50 * sorts}  {310 * times}  Optimizer.step#{optimizer}.step  annotation  -  -  -  -",
            f"main  {at + 35 + 50 * sorts}  {300 * times}  aten::_fused_adam_  op  -  [{table},{table},{table},{table}]  TensorList,TensorList,TensorList,TensorList  -",
        ]
        for place in range(sorts):
            lines += [
                f"main  {at + 18 + 50 * place}  48  cudaLaunchKernel  runtime  radix_sort_{place}  -  -  -",
                f"stream 7  {at + 22 + 100 * times + 2 * place}  1  radix_sort_{place}  kernel  -  -  -  -",
            ]
        for piece in range(pieces):
            host, device = 300 * times // pieces, 800 * times // pieces
            start, kernel = at + 35 + 50 * sorts + host * piece, f"multi_tensor_apply_kernel_{piece}"
            lines += [f"main  {start}  {host - 1}  cudaLaunchKernel  runtime  {kernel}  -  -  -"]
            lines += [
                f"stream 7  {at + 160 * times + device * piece}  {device}  {kernel}  kernel  -  -  -  -"
            ]
        lines += [
            f"main  {at + 400 * times + 50 * sorts}  {590 * times - 50 * sorts}  cudaDeviceSynchronize  runtime  -  -  -  -"
        ]
    found = {each.code: each for each in apply_rules(case_of(compute_trace("\n".join(lines))))}
    return found[RULE.code]


def test_a_few_rows_need_no_launch_for_each_piece_of_the_table() -> None:
    few, many = updated_on_device(1), updated_on_device(10)
    assert many.speedup.mid > 1.3 * few.speedup.mid


def left_of(found: Finding) -> float:
    assert found.left_ns_per_step is not None
    return found.left_ns_per_step.mid


def test_the_host_also_dispatches_the_sparse_update() -> None:
    none, some, most = (left_of(updated_on_device(10, name)) for name in ("SGD", "Adagrad", "Adam"))
    assert some - none == pytest.approx(SPARSE_ADAGRAD_HOST_NS - SPARSE_SGD_HOST_NS, rel=0.5)
    assert most - none == pytest.approx(SPARSE_ADAM_HOST_NS - SPARSE_SGD_HOST_NS, rel=0.5)


def test_more_rows_of_a_batch_need_more_of_the_device() -> None:
    few, many = (updated_on_device(10, "Adagrad", rows) for rows in (8192, 900000))
    assert many.speedup.low < few.speedup.low / 1.3


def test_the_host_may_not_launch_the_sorting_of_a_dense_gradient() -> None:
    """At best these launches go, at worst they move to the update: less than half of them is expected to stay."""
    plain, sorting = (updated_on_device(10, "Adam", sorts=count) for count in (0, 18))
    assert sorting.left_ns_per_step is not None and plain.left_ns_per_step is not None
    more = left_of(sorting) - left_of(plain)
    assert 0 < more < 0.4 * 18 * 50_000


def test_a_step_that_the_host_decides_afterwards_is_as_uncertain_as_hosts_are() -> None:
    """Downwards: what the update costs the host is in the promise, so that little more than that is gained."""
    found = updated_on_device(10, "Adam")
    assert found.speedup.high / found.speedup.mid < 1.45
    assert found.speedup.mid / found.speedup.low > 1.1
