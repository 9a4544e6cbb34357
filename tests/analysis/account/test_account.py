"""Where did the step go: each moment belongs to one part."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.account.account import account
from stepscope.analysis.steps.find import find_steps
from tests.builders.inline import check, trace_of


def test_exposed_collective() -> None:
    check(
        """
        track      start  dur  name            kind
        main           0   15  ProfilerStep#1  annotation
        stream 7       0   10  gemm            kernel
        stream 13      5   10  ncclDevKernel   kernel
        """,
        "compute=10 collective=5",
    )


def test_compute_hides_communication_and_communication_hides_copies() -> None:
    check(
        """
        track      start  dur  name             kind
        main           0   40  ProfilerStep#1   annotation
        stream 7       0   10  gemm             kernel
        stream 13      5   20  ncclDevKernel    kernel
        stream 20     20   15  Memcpy DtoH      copy
        stream 20     35    5  Memset (Device)  memset
        """,
        "compute=10 (gemm) collective=15 (ncclDevKernel) copy=15 (Memcpy DtoH)",
    )


def test_two_devices_have_an_account_each() -> None:
    trace = trace_of(
        """
        track     start  dur  name            kind
        main          0  100  ProfilerStep#1  annotation
        stream 7      0   60  gemm            kernel
        stream 8     10   40  gemm            kernel
        """
    )
    second = pl.when(pl.col("stream") == 8).then(1).otherwise("device").cast(pl.Int32)
    trace = trace.over({**trace.tables, "tracks": trace.tracks.with_columns(device=second)}, trace.cold)
    parts = account(trace, find_steps(trace)).parts.filter(pl.col("part") == "compute").sort("device")
    assert parts.select("device", "ns").rows() == [(0, 60_000), (1, 40_000)]


def test_a_slice_that_crosses_a_boundary_counts_in_both_steps() -> None:
    trace = trace_of(
        """
        track     start  dur  name              kind        launches
        main          0   10  ProfilerStep#1    annotation  -
        main          2    1  cudaLaunchKernel  runtime     early
        main          3    1  cudaLaunchKernel  runtime     side
        main         10   20  ProfilerStep#2    annotation  -
        main         12    1  cudaLaunchKernel  runtime     late
        stream 7      4    2  early             kernel      -
        stream 9      5   10  side              kernel      -
        stream 7     16   13  late              kernel      -
        """
    )
    found = account(trace, find_steps(trace)).slices.filter(pl.col("part") == "compute").sort("start_ns")
    shown = found.select("step", pl.col("start_ns") // 1_000, pl.col("end_ns") // 1_000).rows()
    assert [(step, start, end) for step, start, end in shown if end > 6] == [
        (1, 5, 10),
        (2, 10, 15),
        (2, 16, 29),
    ]


def test_without_steps_the_account_is_of_the_whole_recording() -> None:
    trace = trace_of(
        """
        track     start  dur  name  kind
        stream 7      0   10  gemm  kernel
        """
    )
    parts = account(trace, find_steps(trace)).parts
    assert parts.select("step", "part", "ns").rows() == [(0, "compute", 10_000)]


_TRACKS = ("main", "autograd", "stream 7", "stream 9")
_NAMES = {
    "op": ("aten::mm", "c10d::allreduce_", "enumerate(DataLoader)#x"),
    "python": ("train.py(3): load_batch", "torch/nn/f.py(1): f", "<built-in function sort>", "a.py(1): go"),
    "runtime": ("cudaLaunchKernel", "cudaStreamSynchronize"),
    "annotation": ("phase", "Optimizer.step#SGD.step", "gloo:all_reduce"),
    "span": ("KernelAndDeviceFunc::Run", "BackendCompile"),
}


@st.composite
def _tables(draw: st.DrawFn) -> str:
    lines = ["track  start  dur  name  kind", "main  0  60  ProfilerStep#1  annotation", "main  60  50  ProfilerStep#2  annotation"]  # fmt: skip
    for _ in range(draw(st.integers(0, 25))):
        track = draw(st.sampled_from(_TRACKS))
        start, duration = draw(st.integers(-10, 120)), draw(st.integers(0, 40))
        if track.startswith("stream"):
            kind, name = draw(
                st.sampled_from([("kernel", "gemm"), ("copy", "Memcpy"), ("kernel", "ncclDevKernel")])
            )
        else:
            kind = draw(st.sampled_from(sorted(_NAMES)))
            name = draw(st.sampled_from(_NAMES[kind]))
        lines.append(f"{track}  {start}  {duration}  {name}  {kind}")
    return "\n".join(lines)


@given(_tables(), st.data())
def test_parts_sum_to_the_step_whatever_happens(text: str, data: st.DataObject) -> None:
    trace = trace_of(text)
    calls = trace.events.filter(pl.col("kind") == "runtime")["id"].to_list()
    work = trace.events.filter(pl.col("kind").is_in(["kernel", "copy"]))["id"].to_list()
    pairs = list(zip(calls, data.draw(st.permutations(work)), strict=False))
    links = {"from": [a for a, _ in pairs], "to": [b for _, b in pairs], "why": ["launch"] * len(pairs)}
    launches = pl.DataFrame(links, schema=trace.links.schema)
    trace = trace.over({**trace.tables, "links": launches}, trace.cold)
    steps = find_steps(trace)
    found = account(trace, steps)
    lengths = found.parts.group_by("device", "step").agg(pl.col("ns").sum()).sort("device", "step")
    wanted = steps.windows.filter(pl.col("end_ns") > pl.col("start_ns")).sort("device", "step")
    assert lengths["ns"].to_list() == (wanted["end_ns"] - wanted["start_ns"]).to_list()
    for _, rows in found.slices.sort("start_ns").group_by("device"):
        assert (rows["start_ns"][1:] == rows["end_ns"][:-1]).all()
    if (
        not steps.is_whole
    ):  # nothing marks the whole recording, so time in which a thread has no event has no name
        assert found.slices["named_by"].null_count() == 0


@pytest.mark.parametrize("step", ["ProfilerStep#1", "train"])
def test_a_step_without_anything_is_unexplained(step: str) -> None:
    check(
        f"""
        track  start  dur   name     kind        role
        main       0  1000  {step}   annotation  step
        """,
        f"unexplained=1000 ({step})",
        device=None,
    )
