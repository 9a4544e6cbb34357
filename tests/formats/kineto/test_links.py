"""Links of Kineto traces: launches, graphs, forward to backward, waits for recorded events; and steps along them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from stepscope.formats import read
from stepscope.formats.source import Source
from tests.builders.documents import codes, event, kineto, links, named, on_stream
from tests.formats.ways import Way

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kineto"


def call(name: str, ts: float, correlation: int, category: str = "cuda_runtime") -> dict[str, Any]:
    return event(category, name, ts, args={"correlation": correlation})


def flow(phase: str, number: int, ts: float, tid: int = 1, category: str = "fwdbwd") -> dict[str, Any]:
    found = {"ph": phase, "id": number, "pid": 1, "tid": tid, "ts": ts, "cat": category, "name": category}
    return found | ({"bp": "e"} if phase == "f" else {})


def test_launches_by_correlation(way: Way) -> None:
    trace = way(
        kineto(
            call("cudaLaunchKernel", 0, 2**53 + 1),
            call("cudaMemcpyAsync", 2, 2**53 + 2),
            call("cudaStreamSynchronize", 4, 2**53 + 3),
            call("cuLaunchKernel", 6, 4, "cuda_driver"),
            call("cudaGetDevice", 8, 0),
            on_stream("kernel", "gemm", 10, correlation=2**53 + 1),
            on_stream("gpu_memcpy", "copy", 11, correlation=2**53 + 2),
            on_stream("cuda_sync", "Stream Sync", 12, correlation=2**53 + 3),
            on_stream("kernel", "triton", 13, correlation=4),
            on_stream("kernel", "alone", 14, correlation=0),
        )
    )
    assert links(trace) == [
        ("cuLaunchKernel", "triton", "launch"),
        ("cudaLaunchKernel", "gemm", "launch"),
        ("cudaMemcpyAsync", "copy", "launch"),
        ("cudaStreamSynchronize", "Stream Sync", "launch"),
    ]


def test_one_launch_of_a_graph_starts_many_kernels(way: Way) -> None:
    kernels = [
        on_stream("kernel", f"node {i}", 5 + i, correlation=9, **{"graph node id": i}) for i in range(3)
    ]
    trace = way(kineto(call("cudaGraphLaunch", 0, 9), *kernels))
    assert links(trace) == [("cudaGraphLaunch", f"node {i}", "launch") for i in range(3)]
    assert trace.kernels["graph_node"].to_list() == [0, 1, 2]


def test_graphs_that_were_recorded() -> None:
    trace = read(Source(str(FIXTURES / "cuda_graph.pt.trace.json.gz")))
    launched = (
        trace.links.filter(pl.col("why") == "launch").group_by("from").len().sort("len", descending=True)
    )
    names = trace.events["name"].cast(pl.String).gather(launched["from"]).to_list()
    assert set(names) == {"cudaGraphLaunch"}
    assert launched["len"].sum() == len(trace.kernels) + len(trace.copies)
    assert (launched["len"] > 1).all()
    assert codes(trace) == {}


def test_processes_in_one_file_reuse_correlation_ids(way: Way) -> None:
    trace = way(
        kineto(
            event("cuda_runtime", "first", 0, pid=10, args={"correlation": 5}),
            event("cuda_runtime", "second", 100, pid=20, args={"correlation": 5}),
            on_stream("kernel", "early", 3, correlation=5),
            on_stream("kernel", "late", 103, correlation=5),
        )
    )
    assert links(trace) == [("first", "early", "launch"), ("second", "late", "launch")]


def test_the_op_that_launched_a_kernel(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op", "aten::linear", 0, 10, args={"External id": 1}),
            event("cpu_op", "aten::mm", 1, 8, args={"External id": 2}),
            call("cudaLaunchKernel", 2, 5),
            on_stream("kernel", "by launch", 20, correlation=5, **{"External id": 1}),
            on_stream("kernel", "by external id", 30, correlation=6, **{"External id": 1}),
            on_stream("kernel", "by nothing", 40, correlation=7),
        )
    )
    kernel = trace.events["name"].cast(pl.String).gather(trace.kernels["event"])
    op = trace.events["name"].cast(pl.String).gather(trace.kernels["op"])
    assert dict(zip(kernel, op, strict=True)) == {
        "by launch": "aten::mm",
        "by external id": "aten::linear",
        "by nothing": None,
    }


def test_old_launches_have_a_flow_and_no_correlation(way: Way) -> None:
    trace = way(
        kineto(
            event("Runtime", "cudaLaunchKernel", 0, 5),
            on_stream("Kernel", "gemm", 10, 5),
            flow("s", 3, 0, category="async_cpu_to_gpu"),
            flow("f", 3, 10, category="async_cpu_to_gpu") | {"pid": 0, "tid": 7},
        )
    )
    assert links(trace) == [("cudaLaunchKernel", "gemm", "launch")]


def test_forward_to_backward(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op", "aten::linear", 0, 10),
            event("cpu_op", "aten::addmm", 2, 5),
            event("cpu_op", "AddmmBackward0", 20, 5, tid=2),
            flow("s", 1, 2),
            flow("f", 1, 20, tid=2),
        )
    )
    assert links(trace) == [("aten::addmm", "AddmmBackward0", "forward-backward")]
    assert named(trace, "AddmmBackward0")["role"] == "backward"


def test_arrows_of_other_tools_are_kept(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op", "a", 0, 5),
            event("cpu_op", "b", 9, 5),
            flow("s", 1, 1, 1, "x"),
            flow("f", 1, 9, 1, "x"),
        )
    )
    assert links(trace) == [("a", "b", "flow")]


def test_arrows_that_lead_nowhere_are_counted(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op", "a", 0, 5),
            flow("s", 1, 1),
            flow("f", 2, 1),
            flow("s", 3, 2),
            flow("f", 3, 50),
        )
    )
    assert links(trace) == []
    assert codes(trace) == {"loose-flows": 3}


def test_waits_are_linked_to_the_record_that_they_name(way: Way) -> None:
    def wait(name: str, ts: float, correlation: int, record: int) -> dict[str, Any]:
        args = {
            "wait_on_cuda_event_record_corr_id": record,
            "wait_on_cuda_event_id": 9,
            "correlation": correlation,
        }
        return on_stream("cuda_sync", name, ts, stream=24, **args)

    trace = way(
        kineto(
            call("cudaEventRecord", 0, 32),
            call("cudaStreamWaitEvent", 2, 40),
            wait("known", 3, 40, 32),
            wait("recorded before the window", 5, 41, 7),
            wait("never seen by CUPTI", 6, 42, -1),
            on_stream("cuda_sync", "Context Sync", 7, correlation=43),
        )
    )
    assert links(trace) == [
        ("cudaEventRecord", "known", "record-wait"),
        ("cudaStreamWaitEvent", "known", "launch"),
    ]
    (problem,) = trace.problems.iter_rows(named=True)
    assert (problem["code"], problem["severity"], problem["count"]) == ("wait-without-record", "info", 2)
    assert problem["detail"] == (
        "2 waits for a CUDA event do not name the call that recorded it, or that call was not recorded."
    )


def test_waits_that_were_recorded() -> None:
    """CUPTI wrote -1 for the record of both waits: what it did not say is not guessed."""
    trace = read(Source(str(FIXTURES / "streams.pt.trace.json.gz")))
    waits = trace.events.filter(pl.col("name").cast(pl.String) == "Stream Wait Event")["id"].to_list()
    assert [trace.arguments(wait)["wait_on_record"] for wait in waits] == [-1, -1]
    assert trace.links.filter(pl.col("why") == "record-wait").is_empty()
    assert codes(trace) == {"wait-without-record": 2}


def test_device_work_has_the_step_of_its_launch(way: Way) -> None:
    trace = way(
        kineto(
            event("user_annotation", "ProfilerStep#3", 0, 10),
            event("user_annotation", "ProfilerStep#4", 10, 10),
            call("cudaLaunchKernel", 2, 5),
            on_stream("gpu_user_annotation", "ProfilerStep#3", 12, 5),
            on_stream("kernel", "late", 12, 5, correlation=5),
            on_stream("kernel", "without a launch", 18, 1),
        )
    )
    assert named(trace, "late")["step"] == 3
    assert named(trace, "without a launch")["step"] == 4
    markers = trace.events.filter(pl.col("role") == "step")
    assert markers.select("name", "step").rows() == [("ProfilerStep#3", 3), ("ProfilerStep#4", 4)]
