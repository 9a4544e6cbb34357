"""A report written by hand, with something in every section and a hostile name wherever a name can stand."""

from __future__ import annotations

from stepscope.reports.model.report import (
    BreakdownRow,
    CollectiveRow,
    Collectives,
    ComputePart,
    CopyRow,
    Coverage,
    CriticalPath,
    Device,
    Finding,
    Gap,
    Hang,
    HangCall,
    HangGroup,
    Input,
    InputStage,
    Interval,
    KernelRow,
    Kernels,
    LiveRow,
    Memory,
    MemoryDevice,
    NamedTime,
    OpRow,
    Ops,
    PathRow,
    PeakRow,
    PhaseRow,
    Precision,
    Problem,
    Profile,
    Queue,
    RegionRow,
    Roofline,
    RooflineRow,
    Serving,
    ServingGaps,
    ServingPhase,
    StepRow,
    Steps,
)
from stepscope.reports.report import Report

MS = 1_000_000
US = 1_000
HOSTILE = "</script><img src=x onerror=alert(1)>[red]|`a` & \x1b[31m\u202e@all\n\"'"
KERNEL = "void at::native::(anonymous namespace)::tile_kernel<at::native::Functor<float>, 4>(int, float*)"


def report(name: str = "job", hostile: str = "load_images") -> Report:
    """Two ranks of four steps; `hostile` is the name of everything that a profile names."""
    return Report(
        profile=_profile(name),
        problems=_problems(hostile),
        hang=_hang(hostile),
        steps=_steps(hostile),
        breakdown=_breakdown(hostile),
        phases=_phases(hostile),
        serving=_serving(hostile),
        critical_path=_critical_path(hostile),
        regions=_regions(hostile),
        findings=_findings(hostile),
        input=Input(share=0.3, exposed_share=0.2, stages=[InputStage(name=hostile, kind="read", total_ns=9 * MS, self_ns=8 * MS, calls=16)], stages_total=1, verdict=f"Input-bound: mostly {hostile}."),
        ops=Ops(total=412, shown=2, rows=_ops(hostile)),
        kernels=Kernels(total=1, shown=1, rows=[_kernel()]),
        precision=Precision(shares={"bf16": 0.7, "fp32": 0.2, "unknown": 0.1}, tensor_core_share=0.65, eligible_share=0.8, unknown_share=0.1),
        roofline=_roofline(hostile),
        device=_device(),
        memory=Memory(devices=[_memory(hostile)]),
        collectives=_collectives(hostile),
        coverage=Coverage(runtime=1.0, device_time=0.98, shapes=None, stacks=0.4, step_time=0.99, gaps=[Gap(what="stacks", share=0.6, reason=hostile, fix="with_stack=True")]),
    )  # fmt: skip


def _hang(hostile: str) -> Hang:
    waits = HangCall(
        ranks=[0],
        state="waits",
        group="default_pg (0)",
        op=hostile,
        sequence=11,
        sizes="[1024]",
        dtype="Float",
        function=hostile,
        place=f"{hostile}:88",
        stack=[f"{hostile} (train.py:88)"],
    )
    group = HangGroup(
        name="default_pg (0)",
        ranks=[0, 1],
        kind="absent",
        sequence=11,
        waiting=[0],
        culprits=[1],
        sentence=f"Rank 0 waits in {hostile}.",
        calls=[waits],
    )
    absent = HangCall(ranks=[1], state="no dump")
    return Hang(kind="dead", sentence=group.sentence, culprits=[1], groups=[group], ranks=[waits, absent])


def _roofline(hostile: str) -> Roofline:
    peak = PeakRow(device="H200 SXM", source="data sheet", flops_per_s={"bf16": 989.4e12}, bytes_per_s=4.8e12)
    row = RooflineRow(class_="matmul", op=hostile, kernels=64, flops=4.1e12, bytes=2.5e9, ideal_ns=30 * MS, time_ns=50 * MS, share=1.0, flops_per_s=82e12, bytes_per_s=5e10, share_of_bound=0.6, bound="flops")  # fmt: skip
    parts = [
        ComputePart(reason="ideal", ns=30 * MS, share=0.6, ns_by_class={"matmul": 30 * MS}),
        ComputePart(reason="matmul", ns=20 * MS, share=0.4, ns_by_class={"matmul": 20 * MS}),
    ]
    return Roofline(peaks=[peak], rows=[row], total=1, parts=parts, known_share=1.0, mfu=0.3, hfu=0.31)


def _profile(name: str) -> Profile:
    return Profile(
        path=f"runs/{name}",
        name=name,
        framework="pytorch",
        format="kineto",
        ranks=[0, 1],
        world_size=2,
        devices=[{"name": "NVIDIA H200", "count": 2, "used": 2}],
        duration_ns=80 * MS,
        events=12_345,
        hosts=["node1"],
        versions={"torch": "2.11"},
        recorded_unix_ns=1_794_708_388_000_000_000,
    )


def _problems(hostile: str) -> list[Problem]:
    return [
        Problem(code="truncated", severity="error", title="The file is cut short", detail=f"It ends in {hostile}.", fix="Copy it again.", rank=1),
        Problem(code="loose-flows", severity="info", title="Arrows that lead nowhere", detail="3 of them."),
    ]  # fmt: skip


def _steps(hostile: str) -> Steps:
    rows = [
        StepRow(
            rank=rank,
            device=0,
            step=step,
            start_ns=step * 20 * MS,
            duration_ns=duration,
            parts={"compute": duration - 4 * MS, "input": 4 * MS},
            outlier=duration == 30 * MS,
            partial=step == 1,
        )
        for rank in (0, 1)
        for step, duration in ((1, 8 * MS), (2, 10 * MS), (3, 10 * MS), (4, 30 * MS))
    ]
    return Steps(
        source="annotation", name=hostile, count=4, median_ns=10 * MS, mean_ns=17 * MS, p10_ns=10 * MS, p90_ns=26 * MS,
        min_ns=10 * MS, max_ns=30 * MS, basis_ns=17 * MS, sentence="A step takes 17.0 ms as recorded.", partial=1, outliers=1, critical_devices={"0": 0, "1": 0}, rows=rows,
    )  # fmt: skip


def _breakdown(hostile: str) -> list[BreakdownRow]:
    compute, lost = 84 * MS, 32 * MS
    total = compute + lost
    return [
        BreakdownRow(part="compute", ns=compute, share=compute / total, names=[NamedTime(name=KERNEL, thread="device 0 stream 7", ns=80 * MS)], names_total=9, named_share=1.0),
        BreakdownRow(part="input", ns=lost, share=lost / total, names=[NamedTime(name=hostile, thread="main thread", ns=31 * MS)], names_total=1, named_share=0.97),
    ]  # fmt: skip


def _serving(hostile: str) -> Serving:
    decode = ServingPhase(
        phase="decode",
        executions=4,
        batch_size=32.0,
        tokens=128,
        total_ns=40 * MS,
        mean_ns=10 * MS,
        tokens_per_s=3200.0,
    )
    gaps = ServingGaps(count=3, total_ns=3 * MS, median_ns=MS, share=0.07)
    return Serving(evidence=hostile, phases=[decode], gaps=gaps)


def _phases(hostile: str) -> list[PhaseRow]:
    return [
        PhaseRow(
            name="train", calls=8, total_ns=80 * MS, share=0.7, parts={"compute": 70 * MS, "input": 10 * MS}
        ),
        PhaseRow(name=hostile, calls=8, total_ns=20 * MS, share=0.17, parts={"input": 20 * MS}),
    ]


def _critical_path(hostile: str) -> CriticalPath:
    rows = [
        PathRow(kind="host", name=hostile, ns=60 * MS, share=0.6, count=8, event=17, step=2),
        PathRow(kind="launch", name="launch latency", ns=40 * MS, share=0.4, count=12, event=40, step=1),
    ]
    kinds = {"host": 0.6, "launch": 0.4}
    return CriticalPath(source="replay", total_ns=100 * MS, kinds=kinds, rows=rows, rows_total=2)


def _regions(hostile: str) -> list[RegionRow]:
    return [
        RegionRow(name="train", count=4, total_ns=60 * MS, share=0.75, median_ns=15 * MS, mean_ns=15 * MS, p90_ns=16 * MS, parts={"compute": 60 * MS}, findings=_findings(hostile)),
        RegionRow(name=hostile, count=4, total_ns=20 * MS, share=0.25, median_ns=5 * MS, mean_ns=5 * MS, p90_ns=6 * MS, parts={"python": 20 * MS}),
    ]  # fmt: skip


def _findings(hostile: str) -> list[Finding]:
    return [
        Finding(code="input-bound", class_="time", title="The device waits for data", detail=f"4 ms of 15 ms, mostly in {hostile}.", evidence={"names": [hostile]}, share=0.28, saves_ns_per_step=4 * MS, speedup=Interval(1.2, 1.35, 1.4), left_ns_per_step=Interval(10.7 * MS, 11.1 * MS, 12.5 * MS), fix="DataLoader(num_workers=8)"),
        Finding(code="small-batch", class_="advice", title="There is room for a larger batch", detail="Half of the memory is free.", share=0.0, fix="Double the batch."),
    ]  # fmt: skip


def _ops(hostile: str) -> list[OpRow]:
    return [
        OpRow(name="aten::mm", scope="model/layer", calls=64, host_total_ns=3 * MS, host_self_ns=2 * MS, device_total_ns=50 * MS, device_self_ns=50 * MS, memory_bytes=1 << 20, flops=2 * 10**12, bytes=1 << 30, share=0.8),
        OpRow(name=hostile, calls=8, host_total_ns=400 * US, host_self_ns=300 * US, device_total_ns=0, device_self_ns=0, share=0.0),
    ]  # fmt: skip


def _kernel() -> KernelRow:
    return KernelRow(name=KERNEL, op="aten::mm", calls=64, total_ns=50 * MS, mean_ns=780 * US, min_ns=700 * US, max_ns=900 * US, grid=[128, 1, 1], block=[256, 1, 1], registers=64, shared_bytes=49_152, occupancy=0.5, precision="bf16", tensor_cores=True, eligible=True, share=1.0)  # fmt: skip


def _device() -> Device:
    timeline = [
        {"rank": rank, "device": 0, "start_ns": i * MS, "end_ns": (i + 1) * MS, "busy": 0.5 + 0.1 * i}
        for rank in (0, 1)
        for i in range(4)
    ]
    return Device(
        busy_share=0.724, mfu=0.31, sm_efficiency=0.5, occupancy=0.4, streams=2, concurrency=1.1,
        copies=[CopyRow(direction="HtoD", source="Pageable", target="Device", calls=4, bytes=1 << 24, total_ns=3 * MS, exposed_ns=1 * MS, gb_per_s=5.6)],
        queue=Queue(launches=900, median_delay_ns=12 * US, p90_delay_ns=40 * US, median_depth=3.0, max_depth=20, empty_share=0.25),
        timeline=timeline,
    )  # fmt: skip


def _memory(hostile: str) -> MemoryDevice:
    timeline = [{"time_ns": i * MS, "allocated": (1 + i % 3) << 30, "reserved": 4 << 30} for i in range(9)]
    return MemoryDevice(
        device=0, device_kind="gpu", source="allocator", peak_bytes=3 << 30, peak_at_ns=2 * MS, reserved_peak=4 << 30,
        capacity_bytes=80 << 30, timeline=timeline, at_peak=[LiveRow(kind="activation", op=hostile, scope="model", bytes=1 << 30)],
        at_peak_total=20, growth_bytes_per_step=0, fragmentation=0.25, known_share=0.4, note=f"Most of it was there before {hostile}.", rank=0,
    )  # fmt: skip


def _collectives(hostile: str) -> Collectives:
    row = CollectiveRow(name="all_reduce", group=hostile, group_size=2, dtype="float", calls=16, bytes=1 << 28, total_ns=12 * MS, exposed_ns=5 * MS, overlapped_ns=7 * MS, algorithm_gb_per_s=22.4, bus_gb_per_s=22.4)  # fmt: skip
    ranks = [
        {"rank": 0, "total_ns": 9 * MS, "wait_ns": 6 * MS},
        {"rank": 1, "total_ns": 3 * MS, "wait_ns": 0},
    ]
    return Collectives(rows=[row], exposed_share=0.06, kernel_share=0.12, ranks=ranks)
