"""XPlane: GPUs, TPUs and others; their work, its launches, and the lines that the file leaves to its reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.formats.xplane.tracks import device_of
from stepscope.trace.trace import Trace
from tests.builders.documents import codes
from tests.builders.files import load
from tests.builders.xspace_bytes import PlaneBytes, Unsigned, gpu_job, space
from tests.formats.xplane.test_draft import rows

DETAILS = "regs:168 static_shared:16 dynamic_shared:213220 grid:2,66,1 block:384,1,1 occ_pct:18.75"


def derived(trace: Trace, line: str) -> list[tuple[Any, ...]]:
    """Name, start and duration of the events of a derived line."""
    track = trace.tracks.filter((pl.col("thread") == line) & (pl.col("what") == "derived"))["id"]
    return rows(trace.events.filter(pl.col("track").is_in(track.implode())), "name", "start_ns", "dur_ns")


def test_a_stream_is_a_track_of_its_device(tmp_path: Path) -> None:
    trace = load(space(*gpu_job()), tmp_path)
    columns = ("process", "thread", "stream", "device", "device_kind", "what")
    assert rows(trace.tracks, *columns)[1] == (
        "/device:GPU:0 NVIDIA H200",
        "Stream #7(Compute)",
        7,
        0,
        "gpu",
        "device",
    )
    assert trace.info.devices == [
        {
            "plane": "/device:GPU:0",
            "kind": "gpu",
            "id": 0,
            "name": "NVIDIA H200",
            "gpu_device_name": "NVIDIA H200",
        }
    ]
    assert codes(trace) == {}


def test_launches_link_calls_to_work(tmp_path: Path) -> None:
    trace = load(space(*gpu_job()), tmp_path)
    names = trace.events["name"].cast(pl.String)
    assert len(trace.links) == 8
    assert set(names.gather(trace.links["from"])) == {"cuLaunchKernel"}
    ends = trace.links.with_columns(
        a=trace.events["start_ns"].gather(trace.links["from"]),
        b=trace.events["start_ns"].gather(trace.links["to"]),
    )
    assert set(ends["b"] - ends["a"]) == {5, 6}
    assert trace.events.filter(pl.col("kind") == "kernel")["step"].to_list() == [0] * 4 + [1] * 4


def test_correlation_ids_are_those_of_a_device(tmp_path: Path) -> None:
    host, one, two = PlaneBytes("/host:CPU"), PlaneBytes("/device:GPU:0"), PlaneBytes("/device:GPU:1")
    host.line("t", [host.event("a", 0, 1, correlation_id=5, device_id=1), host.event("b", 10, 1, correlation_id=5, device_id=0),
                    host.event("c", 20, 1, correlation_id=6)])  # fmt: skip
    for plane in (one, two):
        plane.line(
            "Stream #1(Compute)",
            [
                plane.event("k", 1_000, 1, correlation_id=Unsigned(5)),
                plane.event("l", 2_000, 1, correlation_id=6),
            ],
        )
    trace = load(space(host, one, two), tmp_path)
    names = trace.events["name"].cast(pl.String).to_list()
    tracks = trace.events["track"].to_list()
    found = sorted((names[a], names[b], tracks[b]) for a, b in rows(trace.links, "from", "to"))
    assert found == [("a", "k", 2), ("b", "k", 1), ("c", "l", 1), ("c", "l", 2)]


def test_a_graph_is_one_launch_of_many_kernels(tmp_path: Path) -> None:
    host, gpu = PlaneBytes("/host:CPU"), PlaneBytes("/device:GPU:0")
    host.line("t", [host.event("cuGraphLaunch", 5_000, 100, correlation_id=9, device_id=0)])
    gpu.line(
        "Stream #1(Compute)",
        [gpu.event("k", i * 1_000, 500, correlation_id=9, cuda_graph_node_id=100 + i) for i in range(3)],
    )
    trace = load(space(host, gpu), tmp_path)
    assert rows(trace.links, "from", "to", "why") == [
        (0, i, "launch") for i in (1, 2, 3)
    ]  # also work that seems early
    assert trace.kernels["graph_node"].to_list() == [100, 101, 102]


@pytest.mark.parametrize("details", [DETAILS, DETAILS.replace(" ", "\n")])
def test_kernels(tmp_path: Path, details: str) -> None:
    gpu = PlaneBytes("/device:GPU:0")
    gpu.line("Stream #1(Compute)", [
        gpu.event("k", 0, 1_000, kernel_details=details),
        gpu.event("l", 2_000, 1_000, kernel_details="grid:1,2 block:x", theoretical_occupancy_pct=50.0),
        gpu.event("m", 4_000, 1_000),
        gpu.event("n", 6_000, 1_000, theoretical_occupancy_pct=0.0),
    ])  # fmt: skip
    trace = load(space(gpu), tmp_path)
    columns = ("event", "grid", "block", "registers", "shared_bytes", "occupancy")
    assert rows(trace.kernels, *columns) == [
        (0, [2, 66, 1], [384, 1, 1], 168, 213_236, 18.75),
        (1, None, None, None, None, 50.0),
        (2, None, None, None, None, None),
        (3, None, None, None, None, None),
    ]


def test_copies_and_fills(tmp_path: Path) -> None:
    gpu = PlaneBytes("/device:GPU:0")
    gpu.line("Stream #1(MemcpyH2D)", [
        gpu.event("MemcpyH2D", 0, 1, memcpy_details="kind_src:pinned kind_dst:device size:8388608 dest:0 async:1"),
        gpu.event("copy kernel", 1_000, 1, memcpy_details="kind_src:device kind_dst:pageable size:5 dest:0 async:1"),
        gpu.event("MEMCPYDtoD", 2_000, 1),
        gpu.event("Memset 0", 3_000, 1, Memset_details="kind:device num_bytes:4 async:1"),
    ])  # fmt: skip
    trace = load(space(gpu), tmp_path)
    assert trace.events["kind"].to_list()[:4] == ["copy", "copy", "copy", "memset"]
    assert rows(trace.copies, "bytes", "direction", "source", "target") == [
        (8_388_608, "HtoD", "pinned", "device"),
        (5, "DtoH", "device", "pageable"),
        (None, "DtoD", None, None),
        (4, None, None, "device"),
    ]


def test_memory(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    told: dict[str, Any] = {
        "allocator_name": "GPU_1_bfc",
        "allocation_bytes": 256,
        "requested_bytes": 200,
        "addr": Unsigned((1 << 64) - 16),
    }
    host.line("t", [
        host.event("MemoryAllocation", 1_000, 0, **told, bytes_allocated=256, bytes_reserved=1_024),
        host.event("MemoryDeallocation", 2_000, 0, **told, bytes_allocated=0, bytes_reserved=1_024),
        host.event("cuMemHostAlloc", 3_000, 5, memalloc_details="kind:unknown num_bytes:64", correlation_id=1, device_id=0),
    ])  # fmt: skip
    trace = load(space(host), tmp_path)
    columns = (
        "device",
        "device_kind",
        "allocator",
        "time_ns",
        "bytes",
        "requested",
        "address",
        "total_allocated",
        "total_reserved",
    )
    assert rows(trace.memory, *columns) == [
        (1, "gpu", "GPU_1_bfc", 1, 256, 200, (1 << 64) - 16, 256, 1_024),
        (1, "gpu", "GPU_1_bfc", 2, -256, 200, (1 << 64) - 16, 0, 1_024),
        (0, "cpu", "cuMemHostAlloc", 3, 64, None, None, None, None),
    ]


def test_scopes_of_device_work(tmp_path: Path) -> None:
    gpu = PlaneBytes("/device:GPU:0")
    gpu.line("Stream #1(Compute)", [
        gpu.event("a", 0, 1, tf_op="jit(f)/layer/dot:Dot", hlo_op="x"),
        gpu.event("b", 1_000, 1, tf_op="XlaModule:", hlo_op="outer::inner", hlo_module="jit_f"),
        gpu.event("c", 2_000, 1),
    ])  # fmt: skip
    trace = load(space(gpu), tmp_path)
    assert rows(trace.ops, "event", "scope") == [(0, "jit(f)/layer/dot"), (1, "jit_f/outer/inner")]


def test_derived_lines_of_a_gpu(tmp_path: Path) -> None:
    trace = load(space(*gpu_job()), tmp_path)
    assert derived(trace, "Steps") == [("0", 15, 23), ("1", 115, 23)]
    assert derived(trace, "XLA Modules") == [("jit_f", at, 3) for at in (15, 35, 115, 135)]
    assert derived(trace, "XLA Ops")[:3] == [("fusion.0", 15, 1), ("fusion.1", 17, 1), ("fusion.0", 35, 1)]
    assert derived(trace, "Framework Ops")[:2] == [
        ("jit(f)/norm:Mul", 15, 1),
        ("jit(f)/layer/dot:Dot", 17, 1),
    ]
    assert derived(trace, "Framework Name Scope")[:3] == [
        ("jit(f)", 15, 3),
        ("layer", 17, 1),
        ("jit(f)", 35, 3),
    ]
    added = trace.events.filter(pl.col("source_category") == "derived")
    assert set(added["kind"]) == {"module", "scope"}
    assert set(trace.tracks["what"].gather(added["track"])) == {"derived"}


def test_derived_lines_that_the_file_has_are_not_made_again(tmp_path: Path) -> None:
    host, gpu = gpu_job()
    for name in ("Steps", "XLA Modules", "XLA Ops", "TensorFlow Ops", "TensorFlow Name Scope"):
        gpu.line(name, [gpu.event("mine", 0, 1_000)], 0xDEADBEEF)
    trace = load(space(host, gpu), tmp_path)
    assert "derived" not in set(trace.events["source_category"])
    uses = dict(rows(trace.tracks, "thread", "what"))
    assert [uses[name] for name in ("Steps", "XLA Ops", "Stream #7(Compute)")] == [
        "derived",
        "derived",
        "device",
    ]


def test_spans_end_where_the_next_one_starts(tmp_path: Path) -> None:
    gpu = PlaneBytes("/device:GPU:0")
    for stream, module in ((1, "jit_a"), (2, "jit_b")):
        gpu.line(
            f"Stream #{stream}(Compute)", [gpu.event("k", stream * 1_000, 5_000, hlo_module=module)], stream
        )
    assert derived(load(space(gpu), tmp_path), "XLA Modules") == [("jit_a", 1, 1), ("jit_b", 2, 5)]


def test_a_tpu_core_is_busy_once(tmp_path: Path) -> None:
    tpu = PlaneBytes("/device:TPU:3")
    tpu.fact("device_type_string", "TPU v5e")
    tpu.line("Steps", [tpu.event("0", 0, 10_000)])
    tpu.line("XLA Modules", [tpu.event("jit_f(1)", 0, 9_000)])
    tpu.line("XLA Ops", [tpu.event("while.1", 0, 8_000), tpu.event("fusion.2", 1_000, 2_000)])
    tpu.line(
        "Async XLA Ops",
        [
            tpu.event(n, at * 1_000, 3_000)
            for at, n in enumerate(["copy-start.1", "all-gather-start", "copy-start.2", "x"])
        ],
    )
    tpu.line(
        "_counters_",
        [tpu.event("power", 0, 0, counter_value=1.5), tpu.event("power", 1_000, 0, counter_value=2)],
    )
    tpu.describe("fusion.2", tf_op="jit(f)/layer/dot:Dot", flops=99)
    trace = load(space(tpu), tmp_path)
    columns = ("thread", "what", "device", "device_kind")
    assert rows(trace.tracks, *columns) == [
        ("Steps", "derived", 3, "tpu"),
        ("XLA Modules", "derived", 3, "tpu"),
        ("XLA Ops", "device", 3, "tpu"),
        ("Async XLA Ops", "device", 3, "tpu"),
        ("_counters_", "counter", 3, "tpu"),
        ("Async XLA Ops (lane 2)", "device", 3, "tpu"),
        ("Async XLA Ops (lane 3)", "device", 3, "tpu"),
    ]
    kinds = rows(trace.events, "track", "name", "kind", "depth")
    assert kinds[:4] == [
        (0, "0", "annotation", 0),
        (1, "jit_f(1)", "module", 0),
        (2, "while.1", "scope", 0),
        (2, "fusion.2", "kernel", 1),
    ]
    lanes = [(track, name, kind) for track, name, kind, _ in kinds if track in (3, 5, 6)]
    assert lanes == [
        (3, "copy-start.1", "copy"),
        (3, "x", "kernel"),
        (5, "all-gather-start", "kernel"),
        (6, "copy-start.2", "copy"),
    ]
    assert rows(trace.counters, "track", "time_ns", "value") == [(4, 0, 1.5), (4, 1, 2.0)]
    assert rows(trace.ops, "event", "scope") == [(3, "jit(f)/layer/dot")]
    assert trace.arguments(3) == {"tf_op": "jit(f)/layer/dot:Dot", "flops": 99}


@pytest.mark.parametrize(
    ("plane", "kind", "ordinal"),
    [
        ("/host:CPU", None, None),
        ("/device:GPU:12", "gpu", 12),
        ("/device:TPU:0 SparseCore 1", "tpu", 0),
        ("/device:CUSTOM:MOSAIC:7", "other", 7),
        ("/device:CUSTOM:thing", "other", None),
        ("/device:CPU:0", "cpu", 0),
        ("#Chip 1#", "tpu", None),
        ("/virtualdevice:x", "other", None),
        ("/device:GPU:99999999999999999999", "gpu", None),
    ],
)
def test_devices_by_the_names_of_planes(plane: str, kind: str | None, ordinal: int | None) -> None:
    found = device_of(plane)
    assert (found.kind, found.ordinal) == (kind, ordinal)
