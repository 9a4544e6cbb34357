"""Every argument that Kineto writes is found again: in the table that has a column for it, or with the event."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.documents import event, kineto, told
from tests.formats.ways import Way

pytestmark = pytest.mark.thorough

# Per category: the argument as in the file, its value, where it is found again, and the value there if it differs.
Case = tuple[Any, ...]
OP: list[Case] = [
    ("External id", 7, "ops.external_id"),
    ("external id", 8, "ops.external_id"),
    ("Input Dims", [[2, 3], []], "ops.shapes", "[[2, 3], []]"),
    ("Input dims", [[4]], "ops.shapes", "[[4]]"),
    ("Input type", ["float", ""], "ops.dtypes", '["float", ""]'),
    ("Concrete Inputs", ["", "True"], "ops.concrete_inputs", '["", "True"]'),
    ("Sequence number", 12, "ops.sequence"),
    ("Module Hierarchy", "A.B", "ops.scope"),
    ("Record function id", 1 << 53, "arguments.record_function_id"),
    ("Ev Idx", 3, "arguments.ev_idx"),
    ("Input Strides", [[3, 1], []], "arguments.strides", "[[3, 1], []]"),
    ("Fwd thread id", 2, "arguments.fwd_thread"),
    ("Call stack", "a.py(1): f;b.py(2): g", "arguments.call_stack"),
    ("Backend", "CPU", "arguments.Backend"),
    ("CallFrom", "here", "arguments.CallFrom"),
    ("finished", True, "arguments.finished", 1),
    ("kernel_backend", "triton", "arguments.kernel_backend"),
    ("kernel_file", "/tmp/k.py", "arguments.kernel_file"),
    ("kernel_hash", "abc", "arguments.kernel_hash"),
    ("kernel_kwargs", "XBLOCK=8", "arguments.kernel_kwargs"),
    ("num_warps", 4, "arguments.num_warps"),
    ("num_stages", 1, "arguments.num_stages"),
    ("grid", "grid(8,)", "arguments.grid"),
    ("stream", 7, "arguments.stream"),
]
COLLECTIVE: list[Case] = [
    ("dtype", "Float", "collectives.dtype"),
    ("In msg nelems", 10, "collectives.elements"),
    ("Out msg nelems", 80, "collectives.elements_out"),
    ("Group size", 8, "collectives.group_size"),
    ("Process Group Name", "0", "collectives.group"),
    ("Process Group ID", "140", "collectives.group"),
    ("Process Group Ranks", [0, 1], "collectives.group_ranks", "[0, 1]"),
    ("Seq", 5, "collectives.sequence"),
    ("Process Group Description", "default_pg", "arguments.group_description"),
    ("In split size", [1, 2], "arguments.in_split", "[1, 2]"),
    ("Out split size", "[3]", "arguments.out_split"),
    ("Global rank start", 0, "arguments.global_rank_start"),
    ("Global rank stride", 1, "arguments.global_rank_stride"),
    ("Rank", 3, "arguments.rank"),
    ("Src Rank", 1, "collectives.peer"),
    ("Dst Rank", 2, "collectives.peer"),
    ("Input Tensors start", [[1, 2**60]], "arguments.Input Tensors start"),
    ("Output Tensors start", [[3]], "arguments.Output Tensors start"),
    ("Is asynchronized op", True, "arguments.Is asynchronized op"),
    ("Comms Id", 2**63 + 1, "arguments.Comms Id"),
]
ON_DEVICE: list[Case] = [
    ("External id", 7, "arguments.external_id"),
    ("device", 0, "arguments.device"),
    ("context", 1, "arguments.context"),
    ("stream", 2**53 + 1, "arguments.stream"),
    ("correlation", 2**53 + 3, "arguments.correlation"),
    ("hsa_queue", 4, "arguments.hsa_queue"),
]
KERNEL: list[Case] = [
    *ON_DEVICE,
    ("kind", "Dispatch Kernel", "arguments.rocm_kind"),
    ("registers per thread", 80, "kernels.registers"),
    ("shared memory", 6912, "kernels.shared_bytes"),
    ("blocks per SM", 2.5, "kernels.blocks_per_sm"),
    ("warps per SM", 5.75, "kernels.warps_per_sm"),
    ("est. achieved occupancy %", 9, "kernels.occupancy"),
    ("grid", [16, 24, 1], "kernels.grid"),
    ("block", [64, 1, 1], "kernels.block"),
    ("graph node id", 2**63 + 9, "kernels.graph_node"),
    ("graph id", 3, "arguments.graph_id"),
    ("queued", 0, "arguments.queued"),
    ("priority", -5, "arguments.priority"),
    ("channel", 1, "arguments.channel"),
    ("channel_type", "ASYNC", "arguments.channel_type"),
    ("occupancy", {"limitingFactors": "WARPS"}, "arguments.occupancy"),
    ("blocks per SM", "inf", "arguments.blocks per SM"),
    ("grid", [1, 2], "arguments.grid"),
]
COPY: list[Case] = [
    *ON_DEVICE,
    ("kind", "HtoD", "arguments.rocm_kind"),
    ("bytes", 1024, "copies.bytes"),
    ("size", 2048, "copies.bytes"),
    ("memory bandwidth (GB/s)", 1.25, "arguments.bandwidth"),
    *(
        (name, 1, f"arguments.{name}")
        for name in ("fromDevice", "inDevice", "toDevice", "fromContext", "toContext")
    ),
]
RUNTIME: list[Case] = [
    ("External id", 7, "arguments.external_id"),
    ("cbid", 211, "arguments.cbid"),
    ("cid", 48, "arguments.cid"),
    ("correlation", 12, "arguments.correlation"),
    *(
        (name, value, f"arguments.{name}")
        for name, value in (
            ("kernel", "k"), ("grid", [1, 1, 1]), ("block", [2, 1, 1]), ("shared memory", 0), ("stream", "0x0"),
            ("src", "0x5567"), ("dst", "0x7fda"), ("size", "2560"), ("kind", "1"), ("ptr", "0x1"), ("bytes", 5),
        )
    ),
]  # fmt: skip
SYNC: list[Case] = [
    *ON_DEVICE,
    ("cuda_sync_kind", "Event Sync", "arguments.sync_kind"),
    ("wait_on_stream", -1, "arguments.wait_on_stream"),
    ("wait_on_cuda_event_id", 9, "arguments.wait_on_event"),
    ("wait_on_cuda_event_record_corr_id", -1, "arguments.wait_on_record"),
    ("event_id", 9, "arguments.event_id"),
]
MEMORY: list[Case] = [
    ("Total Allocated", 2**40, "memory.total_allocated"),
    ("Total Reserved", 2**41, "memory.total_reserved"),
    ("Addr", 2**63 + 512, "memory.address"),
    ("Device Id", 3, "memory.device"),
    ("Device Type", 12, "memory.device_kind", "xpu"),
    ("Ev Idx", 5, "arguments.ev_idx"),
]
PYTHON: list[Case] = [
    ("Python id", 5, "arguments.python_id"),
    ("Python parent id", 4, "arguments.python_parent_id"),
    ("Python module id", 0, "arguments.python_module_id"),
    ("Python thread", 0, "arguments.python_thread"),
    ("Ev Idx", 9, "arguments.ev_idx"),
    ("Python parent id", "null", "arguments.Python parent id"),
]
XPU: list[Case] = [
    (name, 3, f"arguments.{name}")
    for name in (
        "sycl queue", "kernel_id", "sycl_node_id", "sycl_invocation_id", "source_line_number", "Number_wait_events",
        "Return_code", "Communicator_id", "memory opration id",
    )
]  # fmt: skip
# What an annotation says of its inputs stays with it: it is no op.
ANNOTATION = [(*case[:2], f"arguments.{_}", *case[3:]) for case in OP if (_ := case[2].split(".")[1])]

CASES: dict[str, list[Case]] = {
    "cpu_op": OP,
    "Operator": OP,
    "user_annotation": [
        (name, value, {"arguments.scope": "arguments.module_hierarchy"}.get(where, where), *more)
        for name, value, where, *more in ANNOTATION
    ],
    "kernel": KERNEL,
    "Kernel": KERNEL,
    "mtia_ccp_events": KERNEL,
    "hpu_op": KERNEL,
    "gpu_memcpy": COPY,
    "gpu_memset": COPY,
    "Memcpy": COPY,
    "Memset": COPY,
    "cuda_runtime": RUNTIME,
    "cuda_driver": RUNTIME,
    "Runtime": RUNTIME,
    "mtia_runtime": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "xpu_runtime": [*RUNTIME, *XPU],
    "xpu_driver": [*RUNTIME, *XPU],
    "cuda_sync": SYNC,
    "cuda_event": SYNC,
    "xpu_sync": [*SYNC, *XPU],
    "python_function": PYTHON,
    "Trace": [("Op count", 3, "arguments.Op count")],
    "overhead": [("cost", 3, "arguments.cost")],
    "mtia_insight": [("anything", [1, {"a": None}], "arguments.anything")],
    "collective_comm": [
        ("Communicator_id", 2**53 + 1, "arguments.Communicator_id"),
        ("device", 1, "arguments.device"),
    ],
}


@pytest.mark.parametrize("category", CASES)
def test_each_argument_alone(way: Way, category: str) -> None:
    cases = CASES[category]
    trace = way(kineto(*(event(category, "x", i, args={case[0]: case[1]}) for i, case in enumerate(cases))))
    for i, (name, value, where, *other) in enumerate(cases):
        found = told(trace, i)
        assert found.get(where) == (other[0] if other else value), f"{name} in {found}"


@pytest.mark.parametrize("category", ["cpu_op", "kernel", "cuda_runtime"])
def test_collective_arguments_on_any_event(way: Way, category: str) -> None:
    events = [
        event(category, "x", i, args={"Collective name": "allreduce", case[0]: case[1]})
        for i, case in enumerate(COLLECTIVE)
    ]
    trace = way(kineto(*events))
    assert trace.collectives["name"].unique().to_list() == ["allreduce"]
    for i, (name, value, where, *other) in enumerate(COLLECTIVE):
        found = told(trace, i)
        assert found.get(where) == (other[0] if other else value), f"{name} in {found}"


@pytest.mark.parametrize("category", ["cpu_instant_event", None])
def test_memory_arguments_with_and_without_a_category(way: Way, category: str | None) -> None:
    events = [
        event(category, "[memory]", i, ph="i", args={"Bytes": -512, name: value})
        for i, (name, value, *_) in enumerate(MEMORY)
    ]
    trace = way(kineto(*events))
    assert trace.memory["bytes"].to_list() == [-512] * len(MEMORY)
    for i, (name, value, where, *other) in enumerate(MEMORY):
        found = told(trace, i)
        assert found.get(where) == (other[0] if other else value), f"{name} in {found}"


@pytest.mark.parametrize(
    "category", ["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "cuda_sync", "python_function"]
)
def test_all_arguments_at_once(way: Way, category: str) -> None:
    wanted = {name: (value, where, *other) for name, value, where, *other in CASES[category]}
    trace = way(kineto(event(category, "x", args={name: value for name, (value, *_) in wanted.items()})))
    found = told(trace, 0)
    for name, (value, where, *other) in wanted.items():
        kept = found.get(f"arguments.{name}") == value or found.get(where) == (other[0] if other else value)
        assert kept, f"{name} in {found}"


def test_arguments_that_are_no_object_are_kept(way: Way) -> None:
    trace = way(kineto(event("cpu_op", args=[1, "two"]), event("cpu_op", "y", 1, args="three")))
    assert trace.arguments(0) == {"args": [1, "two"]}
    assert trace.arguments(1) == {"args": "three"}


def test_members_of_an_event_that_nobody_knows_are_kept(way: Way) -> None:
    trace = way(kineto(event("cpu_op", tts=5, args={"Ev Idx": 3})))
    assert trace.arguments(0) == {"ev_idx": 3, "tts": 5}
