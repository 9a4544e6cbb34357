"""Kineto's JSON as tables: kinds, tracks, times, header and the tables beside the events, for every writer."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from tests.builders.documents import codes, event, kineto, named, on_stream, told
from tests.formats.ways import Way

KINDS = {
    "cpu_op": "op", "Operator": "op", "user_annotation": "annotation", "gpu_user_annotation": "annotation",
    "python_function": "python", "PythonFunction": "python", "cuda_runtime": "runtime", "cuda_driver": "runtime",
    "Runtime": "runtime", "xpu_runtime": "runtime", "xpu_driver": "runtime", "mtia_runtime": "runtime",
    "glow_runtime": "runtime", "privateuse1_runtime": "runtime", "privateuse1_driver": "runtime",
    "kernel": "kernel", "Kernel": "kernel", "mtia_ccp_events": "kernel", "hpu_op": "kernel",
    "gpu_memcpy": "copy", "Memcpy": "copy", "gpu_memset": "memset", "Memset": "memset",
    "cuda_sync": "sync", "cuda_event": "sync", "xpu_sync": "sync", "overhead": "overhead",
    "external_correlation": "span", "mtia_insight": "span", "collective_comm": "span", "Trace": "span",
    "cuda_profiler_range": "span", "xpu_scope_profiler": "span", "not yet invented": "span",
}  # fmt: skip


def test_every_category_has_its_kind_and_is_kept(way: Way) -> None:
    trace = way(kineto(*(event(category, category, i) for i, category in enumerate(KINDS))))
    assert dict(zip(trace.events["source_category"], trace.events["kind"], strict=True)) == KINDS
    assert trace.events["name"].to_list() == trace.events["source_category"].to_list()


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("cpu_instant_event", "[memory]", "memory"),
        ("cpu_instant_event", "something", "instant"),
        (None, "Record Window End", "instant"),
        ("Operator", "ProfilerStep#12", "annotation"),
        ("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "annotation"),
        ("Operator", "Optimizer.step#SGD.step", "annotation"),
        ("kernel", "__amd_rocclr_copyBuffer.kd", "copy"),
        ("kernel", "MEMORY_COPY_HOST_TO_DEVICE", "copy"),
        ("kernel", "__amd_rocclr_fillBufferAligned", "memset"),
    ],
)
def test_kinds_that_the_name_tells(way: Way, category: str | None, name: str, kind: str) -> None:
    phase = "i" if kind in ("memory", "instant") else "X"
    assert named(way(kineto(event(category, name, ph=phase))), name)["kind"] == kind


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ts", "dur", "start_ns", "dur_ns"),
    [
        ("1712867402348289", "3", 1712867402348289_000, 3_000),
        ("3851362605601.663", "253.188", 3851362605601_663, 253_188),
        # Start and end are rounded, each half up, and the duration is what lies between them.
        ("0.0004", "0.0004", 0, 1),
        ("0.0005", "0.0004", 1, 0),
        ("10.0004999", "1.0000001", 10_000, 1_001),
        ("-3", "1", -3_000, 1_000),
        ("-0.0005", "0", 0, 0),
        ("1e3", "2.5E-1", 1_000_000, 250),
        ('"7"', '"2"', 7_000, 2_000),
        ("0", "0", 0, 0),
    ],
)
def test_times_are_exact(way: Way, ts: str, dur: str, start_ns: int, dur_ns: int) -> None:
    one = f'{{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}'
    trace = way(b'{"deviceProperties": [], "traceEvents": [%b]}' % one.encode())
    assert trace.events.select("start_ns", "dur_ns").row(0) == (start_ns, dur_ns)


def test_the_base_is_kept_beside_the_times(way: Way) -> None:
    trace = way(kineto(event("cpu_op", "x", 1.5), baseTimeNanoseconds=1790857026000000000))
    assert trace.info.base_unix_ns == 1790857026000000000
    assert trace.events["start_ns"].to_list() == [1_500]


# --- tracks -------------------------------------------------------------------------------------------------------


def test_threads_streams_and_what_lies_over_them(way: Way) -> None:
    def meta(name: str, pid: Any, tid: Any, /, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}

    trace = way(
        kineto(
            event("cpu_op", "a", 0, pid=929, tid=930),
            on_stream("kernel", "k", 1),
            on_stream("gpu_user_annotation", "step", 0, 9),
            on_stream("cuda_sync", "Stream Wait Event", 5),
            event("Trace", "PyTorch Profiler (0)", 0, pid="Spans", tid="PyTorch Profiler"),
            meta("process_name", 929, 0, name="python"),
            meta("process_labels", 929, 0, labels="CPU"),
            meta("thread_name", 929, 930, name="thread 930 (python)"),
            meta("process_name", 0, 0, name="python"),
            meta("process_labels", 0, 0, labels="GPU 0"),
            meta("thread_name", 0, 7, name="stream 7"),
        )
    )
    shown = ["process", "thread", "stream", "device", "device_kind", "what", "pid", "tid"]
    tracks = trace.events.join(trace.tracks, left_on="track", right_on="id").select("name", *shown)
    assert {row[0]: row[1:] for row in tracks.rows()} == {
        "a": ("python", "thread 930 (python)", None, None, "cpu", "host", "929", "930"),
        "k": ("GPU 0", "stream 7", 7, 0, "gpu", "device", "0", "7"),
        "step": ("GPU 0", "stream 7 (annotations)", 7, 0, "gpu", "derived", "0", "7"),
        "Stream Wait Event": ("GPU 0", "stream 7 (waits)", 7, 0, "gpu", "derived", "0", "7"),
        "PyTorch Profiler (0)": (None, None, None, None, "cpu", "derived", "Spans", "PyTorch Profiler"),
    }


@pytest.mark.parametrize(
    ("categories", "kind"),
    [
        (["cuda_runtime", "kernel"], "gpu"),
        (["xpu_runtime", "kernel"], "xpu"),
        (["privateuse1_runtime", "kernel"], "other"),
        (["mtia_runtime", "mtia_ccp_events"], "mtia"),
        (["cpu_op", "hpu_op"], "hpu"),
    ],
)
def test_whose_device_it_is(way: Way, categories: list[str], kind: str) -> None:
    trace = way(kineto(event(categories[0], "call"), on_stream(categories[1], "work")))
    work = trace.tracks.filter(pl.col("id") == named(trace, "work")["track"]).row(0, named=True)
    assert (work["what"], work["device_kind"], work["device"]) == ("device", kind, 0)


# --- ROCm ---------------------------------------------------------------------------------------------------------


def test_rocm(way: Way) -> None:
    stream = 0x5598_7C3A_1B20_0001
    trace = way(
        kineto(
            event("cuda_runtime", "hipLaunchKernel", 0, args={"cid": 211, "correlation": 5, "stream": "0x0"}),
            on_stream(
                "kernel", "Cijk_Ailk", 2, 5, stream=stream, device=2, correlation=5, kind="Dispatch Kernel",
                grid=[8, 1, 1], block=[256, 1, 1],
            ),
            on_stream("kernel", "__amd_rocclr_copyBuffer", 8, 1, stream=stream, kind="CopyDeviceToHost", grid=[1, 1, 1]),
            roctracer_version="4.1", hip_runtime_version=60241133, hip_driver_version=60241133,
        )
    )  # fmt: skip
    assert trace.info.versions["hip_runtime_version"] == 60241133
    assert named(trace, "hipLaunchKernel")["kind"] == "runtime"
    (kernel,) = trace.kernels.iter_rows(named=True)
    assert (kernel["grid"], kernel["block"]) == ([8, 1, 1], [256, 1, 1])
    assert (kernel["registers"], kernel["shared_bytes"], kernel["occupancy"]) == (None, None, None)
    assert trace.tracks.filter(pl.col("what") == "device")["stream"].to_list() == [stream]
    assert trace.links.rows() == [(named(trace, "hipLaunchKernel")["id"], kernel["event"], "launch")]
    copy = told(trace, named(trace, "__amd_rocclr_copyBuffer")["id"])
    assert copy["copies.direction"] == "DtoH"
    assert (copy["arguments.grid_x"], copy["arguments.rocm_kind"]) == (1, "CopyDeviceToHost")


def test_rocm_says_at_the_launch_what_others_say_of_the_kernel(way: Way) -> None:
    def call(name: str, correlation: int, **args: Any) -> dict[str, Any]:
        return event(
            "cuda_runtime", name, correlation, args={"correlation": correlation, "stream": "0x0", **args}
        )

    shared: dict[str, Any] = {"shared memory": 512}
    trace = way(
        kineto(
            call("hipLaunchKernel", 1, kernel="k", grid=[3, 1, 1], block=[128, 1, 1], **shared),
            call("hipExtModuleLaunchKernel", 2, kernel="k", grid=[512, 3, 1], block=[256, 2, 1]),
            call("hipMemcpyWithStream", 3, src="0x1", dst="0x2", size="2560", kind="1"),
            call("hipLaunchKernel", 4, kernel="no extent"),
            *(on_stream("kernel", f"kernel {i}", 10 + i, correlation=i) for i in (1, 2, 4)),
            on_stream("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 20, correlation=3, kind="HtoD"),
        )
    )
    assert trace.kernels.select("grid", "block", "shared_bytes").rows() == [
        ([3, 1, 1], [128, 1, 1], 512),
        ([2, 2, 1], [256, 2, 1], None),  # this call counts threads, not blocks
        (None, None, None),
    ]
    assert trace.copies.select("bytes", "direction").rows() == [(2560, "HtoD")]


# --- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "direction", "source", "target"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", "Pageable", "Device"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", "Device", "Pinned"),
        ("Memcpy DtoD (Device -> Device)", "DtoD", "Device", "Device"),
        ("Memcpy PtoP (Device -> Device)", "PtoP", "Device", "Device"),
        ("Memcpy HtoA (Managed Static -> Array)", "HtoA", "Managed Static", "Array"),
        ("CopyHostToDevice", "HtoD", None, None),
        ("MEMORY_COPY_DEVICE_TO_HOST", "DtoH", None, None),
        ("Memcpy Unknown (Unknown -> Unknown)", None, "Unknown", "Unknown"),
    ],
)
def test_where_a_copy_goes(way: Way, name: str, direction: str, source: str, target: str) -> None:
    trace = way(kineto(on_stream("gpu_memcpy", name, bytes=4096)))
    assert trace.copies.row(0)[1:] == (4096, direction, source, target)


def test_a_memset_is_in_copies_without_a_direction(way: Way) -> None:
    trace = way(kineto(on_stream("gpu_memset", "Memset (Device)", bytes=1024)))
    assert trace.copies.row(0)[1:] == (1024, None, None, None)


# --- memory -------------------------------------------------------------------------------------------------------


def memory(name: str, /, **args: Any) -> dict[str, Any]:
    return event("cpu_instant_event", name, 5, ph="i", args=args)


def test_memory(way: Way) -> None:
    address = 0xFFFF_8000_0000_0200
    given: dict[str, Any] = {
        "Total Allocated": 1 << 40,
        "Total Reserved": 1 << 41,
        "Addr": address,
        "Bytes": -512,
    }
    trace = way(kineto(memory("[memory]", **given, **{"Device Id": 3, "Device Type": 1})))
    (row,) = trace.memory.iter_rows(named=True)
    assert row == {
        "event": 0, "device": 3, "device_kind": "gpu", "allocator": None, "stream": None, "time_ns": 5_000,
        "bytes": -512, "requested": None, "address": address, "total_allocated": 1 << 40, "total_reserved": 1 << 41,
        "action": None, "kind": None, "stack": None,
    }  # fmt: skip


def test_the_first_writers_knew_no_address(way: Way) -> None:
    trace = way(
        kineto(event(None, "[memory]", ph="i", args={"Bytes": 64, "Device Id": -1, "Device Type": 0}))
    )
    assert trace.memory.select("device", "device_kind", "bytes", "address").row(0) == (-1, "cpu", 64, None)


def test_what_could_not_be_allocated_is_no_allocation(way: Way) -> None:
    trace = way(kineto(memory("[OutOfMemory]", Bytes=1 << 50, **{"Device Id": 0, "Device Type": 1})))
    assert trace.memory.is_empty()
    assert trace.arguments(0) == {"memory_bytes": 1 << 50, "device_id": 0, "device_type": 1}


# --- collectives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "elements", "elements_out", "size"),
    [
        ("Float", 10, 10, 40),
        ("BFloat16", 10, 80, 160),
        ("Long", 80, 10, 640),
        ("Bool", 3, None, 3),
        ("NotYetInvented", 10, 10, None),
    ],
)
def test_the_message_is_the_larger_side(
    way: Way, dtype: str, elements: int, elements_out: int | None, size: int | None
) -> None:
    args = {"Collective name": "allgather", "dtype": dtype, "In msg nelems": elements}
    args |= {} if elements_out is None else {"Out msg nelems": elements_out}
    trace = way(kineto(event("cpu_op", "record_param_comms", args=args)))
    (row,) = trace.collectives.iter_rows(named=True)
    assert (row["name"], row["bytes"]) == ("allgather", size)
    assert trace.events["role"].to_list() == ["collective"]


def test_a_collective_on_host_and_device(way: Way) -> None:
    args: dict[str, Any] = {
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "Seq": 7,
        "Group size": 2,
    }
    trace = way(
        kineto(
            event("cpu_op", "record_param_comms", args=args | {"External id": 3}),
            on_stream("kernel", "ncclDevKernel_AllReduce", 9, 5, **args, correlation=1),
        )
    )
    assert trace.collectives.select("group", "group_size", "sequence").rows() == [("0", 2, 7), ("0", 2, 7)]
    assert trace.ops["external_id"].to_list() == [3]
    assert len(trace.kernels) == 1


# --- counters -----------------------------------------------------------------------------------------------------


def test_hardware_counters(way: Way) -> None:
    samples = [
        {"ph": "C", "cat": "hardware_counters", "name": "sm__cycles", "pid": "GPU 3 Counters", "tid": 0, "ts": ts,
         "args": {"": value}}
        for ts, value in ((1, 5), (2, 7.5))
    ]  # fmt: skip
    trace = way(kineto(*samples))
    assert trace.events["kind"].to_list() == ["counter", "counter"]
    assert trace.counters.select("time_ns", "value").rows() == [(1_000, 5.0), (2_000, 7.5)]
    track = trace.tracks.filter(pl.col("id") == trace.counters["track"][0]).row(0, named=True)
    assert (track["what"], track["thread"], track["device"], track["device_kind"]) == (
        "counter",
        "sm__cycles",
        3,
        "gpu",
    )


# --- the header ---------------------------------------------------------------------------------------------------


def test_header(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op"),
            deviceProperties=[{"id": 0, "name": "NVIDIA H200", "numSms": 132}, "nonsense"],
            cuda_runtime_version=13000, cupti_version=130001, record_shapes=0, with_flops=1,
            host_name="node7",
            distributedInfo={"backend": "nccl", "rank": 3, "world_size": 300, "nccl_version": "2.27.3"},
        )
    )  # fmt: skip
    info = trace.info
    assert (info.format, info.framework, info.rank, info.world_size, info.host) == (
        "kineto",
        "pytorch",
        3,
        300,
        "node7",
    )
    assert info.devices == [{"id": 0, "name": "NVIDIA H200", "numSms": 132}]
    assert info.versions == {
        "cuda_runtime_version": 13000, "cupti_version": 130001, "schemaVersion": 1, "nccl_version": "2.27.3"
    }  # fmt: skip
    assert info.capture_options == {
        "record_shapes": False, "with_stack": False, "profile_memory": False, "with_flops": True,
        "with_modules": False, "distributed_backend": "nccl",
    }  # fmt: skip


@pytest.mark.parametrize(
    "spread", [None, "x", [], {"rank": "x"}, {"rank": 1.5}, {"rank": 1 << 70}, {"rank": True}]
)
def test_nonsense_in_the_header_is_no_rank(way: Way, spread: Any) -> None:
    trace = way(
        kineto(event("cpu_op"), distributedInfo=spread, deviceProperties=spread, baseTimeNanoseconds=spread)
    )
    assert (trace.info.rank, trace.info.base_unix_ns, trace.info.devices) == (None, 0, [])


def test_a_key_that_is_given_twice_counts_as_last_given(way: Way) -> None:
    first, last = json.dumps({"rank": 0, "world_size": 2}), json.dumps({"rank": 1, "world_size": 2})
    one = json.dumps(event("cpu_op"))
    data = f'{{"distributedInfo": {first}, "traceEvents": [{one}], "distributedInfo": {last}}}'
    assert way(data.encode()).info.rank == 1


def test_two_lists_of_events_are_both_read(way: Way) -> None:
    one, two = json.dumps(event("cpu_op", "a")), json.dumps(event("cpu_op", "b", 5))
    data = f'{{"deviceProperties": [], "traceEvents": [{one}], "x": 1, "traceEvents": [{two}]}}'
    assert way(data.encode()).events["name"].to_list() == ["a", "b"]


def test_what_the_profiler_logged(way: Way) -> None:
    trace = way(
        kineto(
            event("cpu_op"),
            INFO=["started"],
            ERROR=["no CUPTI", "b", "c", "d", "e"],
            WARNING="buffers were dropped",
        )
    )
    logged = trace.problems.select("code", "severity", "title", "detail", "count").rows()
    assert logged == [
        ("capture-error", "error", "The profiler logged errors", "no CUPTI; b; c; and 2 more", 5),
        ("capture-error", "warning", "The profiler logged warnings", "buffers were dropped", 1),
    ]


# --- what is missing ----------------------------------------------------------------------------------------------


def test_launches_without_device_work(way: Way) -> None:
    calls = [event("cuda_runtime", "cudaLaunchKernel", i, args={"correlation": i}) for i in range(3)]
    (problem,) = way(kineto(*calls)).problems.iter_rows(named=True)
    assert (problem["code"], problem["severity"], problem["count"]) == ("no-device-events", "error", 3)
    assert problem["detail"] == (
        "3 launches were recorded, but no kernel or copy: all device time is missing."
    )


def test_options_that_recorded_nothing(way: Way) -> None:
    trace = way(kineto(event("cpu_op", args={"Ev Idx": 1}), with_stack=1, profile_memory=1, record_shapes=1))
    assert trace.problems["title"].to_list() == [
        "with_stack was on, but the file has no stacks",
        "profile_memory was on, but the file has no memory",
        "record_shapes was on, but the file has no shapes",
    ]
    assert trace.problems["code"].unique().to_list() == ["option-without-data"]


def test_device_events_at_time_zero_are_kept_and_told(way: Way) -> None:
    trace = way(kineto(on_stream("kernel", "k", 0, 0), on_stream("kernel", "k", 5, 5), event("cpu_op")))
    assert len(trace.kernels) == 2
    assert codes(trace) == {"zero-time": 1}
    assert trace.problems["detail"][0] == "1 device events have a timestamp of 0."
