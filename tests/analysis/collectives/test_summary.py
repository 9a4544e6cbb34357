"""Collectives: what ran, how much of it exposed, at which bandwidth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.account.account import account
from stepscope.analysis.collectives.calls import operation, recorded_calls
from stepscope.analysis.collectives.summary import Collectives, collectives
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.gpu_trace import gpu_trace

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
STEP = "host | 0 | 1000 | annotation | ProfilerStep#1\n"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
EXPOSED = (
    STEP
    + f"""
    host      |  10 |  10 | runtime | cudaLaunchKernel -> 3
    host      |  30 |  10 | runtime | cudaLaunchKernel -> 4
    stream 7  | 100 | 100 | kernel  | gemm
    stream 13 | 150 | 100 | kernel  | {NCCL}
    """
)


def found_in(trace: Trace) -> Collectives:
    """The collectives of a trace's steps."""
    return collectives(trace, account(trace, find_steps(trace)))


def in_table(table: str, **facts: Any) -> Collectives:
    """The collectives of a table's steps."""
    return found_in(gpu_trace(table, **facts))


def test_exposed_and_overlapped() -> None:
    """Half of it ran beside the matrix product."""
    facts = {"name": "allreduce", "dtype": "Float", "bytes": 400, "group": "0", "group_size": 4}
    found = in_table(EXPOSED, collectives={4: facts})
    row = found.rows.row(0, named=True)
    assert row | {"name": "all_reduce", "dtype": "float32", "group": "0", "group_size": 4, "calls": 1} == row
    assert row | {"bytes": 400, "total_ns": 100, "exposed_ns": 50, "overlapped_ns": 50} == row
    assert (row["algorithm_gb_per_s"], row["bus_gb_per_s"]) == (4.0, 4.0 * 2 * 3 / 4)
    assert found.exposed_share == pytest.approx(0.05)
    assert found.kernel_share == pytest.approx(0.5)


def test_a_host_collective_begins_when_the_device_has_its_data() -> None:
    """gloo's thread first waits for the queue and the copy to the host; the wait for the copy back is the result's."""
    table = (
        STEP
        + """
        host     | 100 | 400 | annotation | gloo:all_reduce
        host     | 110 | 150 | runtime    | cudaStreamSynchronize
        host     | 400 |  10 | runtime    | cudaMemcpyAsync -> 5
        host     | 420 |  70 | runtime    | cudaStreamSynchronize
        stream 7 | 415 |  60 | copy       | Memcpy HtoD
        host     | 600 | 100 | annotation | gloo:all_reduce
        host     | 610 |  10 | runtime    | cudaMemcpyAsync -> 8
        stream 7 | 640 |  20 | copy       | Memcpy DtoH
        host     | 800 | 100 | annotation | gloo:all_reduce
        """
    )
    trace = gpu_trace(table, copies={5: {"direction": "HtoD"}, 8: {"direction": "DtoH"}})
    assert recorded_calls(trace).sort("start_ns")["held_ns"].to_list() == [160, 60, 0]


def test_a_name_is_all_that_is_known() -> None:
    """Operation and type come from the kernel's name; size and bandwidth stay unknown."""
    row = in_table(EXPOSED).rows.row(0, named=True)
    assert row | {"name": "all_reduce", "dtype": "float32", "group": None, "bytes": None} == row
    assert row["algorithm_gb_per_s"] is row["bus_gb_per_s"] is None


def test_size_from_the_inputs_of_the_op() -> None:
    """An all-to-all's kernel is called SendRecv and int8; its op knows better."""
    table = (
        STEP
        + """
        host      |   5 |  50 | op      | c10d::alltoall_base_
        host      |   8 |  40 | op      | record_param_comms
        host      |  10 |  10 | runtime | cudaLaunchKernel -> 4
        stream 13 | 100 | 100 | kernel  | ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)
        """
    )
    ops = {1: {"shapes": "[]", "dtypes": "[]"}, 2: {"shapes": "[[256], []]", "dtypes": '["float", "Scalar"]'}}
    row = in_table(table, ops=ops, kernels={4: {"op": 2}}).rows.row(0, named=True)
    assert row | {"name": "all_to_all", "dtype": "float32", "bytes": 1024} == row


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("allreduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("reduce-scatter.3", "reduce_scatter"),
        ("alltoall_base", "all_to_all"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", "all_reduce"),
        ("multimem_all_reduce_kernel", "all_reduce"),
        ("gloo:broadcast", "broadcast"),
        ("all-gather-start.1", "all_gather"),
        ("CollectiveReduceV2", "all_reduce"),
        ("CollectiveReduceScatterV2", "reduce_scatter"),
        ("CollectiveGatherV2", "all_gather"),
        ("CollectiveBcastSendV2", "broadcast"),
        ("CollectiveAllToAllV3", "all_to_all"),
        ("HorovodAllreduce", "all_reduce"),
        ("wait", None),
    ],
)
def test_operations(spelled: str, meant: str | None) -> None:
    """One name for what many libraries spell differently."""
    assert operation(spelled) == meant


def test_custom_kernels_are_collectives() -> None:
    """All-reduces that do not go through NCCL."""
    kernel = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)"
    found = in_table(EXPOSED.replace(NCCL, kernel))
    assert found.rows["name"].to_list() == ["all_reduce"]
    assert found.kernel_share == pytest.approx(0.5)


def test_host_collectives() -> None:
    """gloo runs on a thread; there is no kernel."""
    found = in_table(STEP + "host | 100 | 300 | annotation | gloo:all_reduce\n", device={})
    row = found.rows.row(0, named=True)
    assert (row["name"], row["total_ns"]) == ("all_reduce", 300)
    assert found.kernel_share is None


@pytest.mark.parametrize("name", ["all-reduce.3", "CollectiveReduceV2"])
def test_programs_on_the_host(name: str) -> None:
    """XLA and TensorFlow on a CPU: the op lasts as long as the collective, and what is inside it is no other."""
    table = f"host | 100 | 300 | op | {name}\nhost | 110 | 200 | op | {name}\n"
    row = in_table(STEP + table, device={}).rows.row(0, named=True)
    assert (row["name"], row["calls"], row["total_ns"], row["exposed_ns"]) == ("all_reduce", 1, 300, 300)


def test_the_host_side_of_device_collectives_is_no_call() -> None:
    found = in_table(EXPOSED + "host | 50 | 5 | op | all-reduce.3\n")
    assert found.rows["calls"].to_list() == [1]


def test_started_and_done() -> None:
    """XLA's asynchronous collectives are one call, from the start of the first half to the end of the second."""
    table = """
        stream 7 | 100 | 10  | kernel | all-reduce-start.1
        stream 7 | 110 | 10  | kernel | all-reduce-start.2
        stream 7 | 120 | 200 | kernel | fusion.7
        stream 7 | 320 | 30  | kernel | all-reduce-done.1
        stream 7 | 350 | 50  | kernel | all-reduce-done.2
        """
    row = in_table(STEP + table).rows.row(0, named=True)
    assert (row["name"], row["calls"], row["total_ns"]) == ("all_reduce", 2, 250 + 290)
    # Both are under way before and after the fusion, the second until its own half ends.
    assert row["exposed_ns"] == (20 + 30) + (10 + 80)
    assert row["overlapped_ns"] == 2 * 200


def test_collectives_that_run_at_once_do_not_hide_each_other() -> None:
    table = """
        stream 13 | 100 | 50 | kernel | ncclDevKernel_AllReduce_Sum_f32_RING_LL
        stream 7 | 120 | 60 | kernel | ncclDevKernel_AllGather_RING_LL
        stream 13 | 170 | 90 | kernel | gemm
        """
    rows = {
        row["name"]: (row["exposed_ns"], row["overlapped_ns"])
        for row in in_table(STEP + table).rows.to_dicts()
    }
    assert rows == {"all_reduce": (50, 0), "all_gather": (50, 10)}


def test_a_line_of_its_own_for_what_runs_meanwhile() -> None:
    """There the whole is drawn, under the name of its start."""
    table = """
        stream 7  | 100 | 10  | kernel | all-reduce-start.1
        stream 7  | 120 | 200 | kernel | fusion.7
        stream 7  | 320 | 30  | kernel | all-reduce-done.1
        stream 13 | 100 | 250 | kernel | all-reduce-start.1
        """
    row = in_table(STEP + table).rows.row(0, named=True)
    assert (row["calls"], row["total_ns"]) == (1, 250)


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="wants the corpus of real traces")
def test_shares_of_kernel_time() -> None:
    """The truths of the corpus: 28.8 % on two A100; 84.6 % over eight ranks, 84.9 % and 62.2 % on the first and last."""
    two = found_in(stepscope.load(Path(CORPUS or "") / "public" / "a100x2_nccl.json.gz").traces[0])
    assert two.kernel_share == pytest.approx(0.288, abs=0.001)
    ranks = [found_in(t) for t in stepscope.load(Path(CORPUS or "") / "public" / "dlrm_8ranks").traces]
    assert ranks[0].kernel_share == pytest.approx(0.849, abs=0.001)
    assert ranks[7].kernel_share == pytest.approx(0.622, abs=0.001)
    whole = sum(r.collective_kernel_ns for r in ranks) / sum(r.kernel_ns for r in ranks)
    assert whole == pytest.approx(0.846, abs=0.001)
