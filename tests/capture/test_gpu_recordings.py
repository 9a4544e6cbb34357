"""What stepscope recorded on a real GPU (benchmarks/record/capture_gpu.py on an H200), and what its report makes of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.reports.model.report import OpRow
from stepscope.reports.report import Report
from stepscope.trace.trace import Trace

RECORDED = Path(__file__).parents[1] / "fixtures" / "capture_gpu"
STEPS = {
    "torch": 5,
    "torch_graphs": 5,
    "torch_compile": 5,
    "torch_compile_graphs": 5,
    "triton": 5,
    "torch_ddp": 4,
    "jax": 5,
    "jax_two": 5,
    "torch_jax": 3,
}
TWO_PROCESSES = ("torch_ddp", "jax_two")
PHASES = {"forward", "backward", "optimizer"}
every = pytest.mark.parametrize("case", STEPS)


@cache
def report_of(case: str) -> Report:
    return stepscope.report(str(RECORDED / case), limit=0)


@cache
def traces_of(case: str) -> list[Trace]:
    return stepscope.load(str(RECORDED / case)).traces


def capture_of(case: str) -> dict[str, Any]:
    return traces_of(case)[0].info.capture


def op_of(case: str, name: str) -> OpRow:
    return next(row for row in report_of(case).ops.rows if row.name == name)


def test_every_recording_is_tested() -> None:
    assert {path.name for path in RECORDED.iterdir()} == set(STEPS)


@every
def test_all_steps_are_there_and_whole(case: str) -> None:
    steps = report_of(case).steps
    assert (steps.source, steps.count, steps.partial) == ("marker", STEPS[case], 0)


@every
def test_the_account_of_each_step_closes(case: str) -> None:
    rows = report_of(case).steps.rows
    assert rows and all(sum(row.parts.values()) == row.duration_ns for row in rows)
    assert all(row.parts["compute"] > 0 for row in rows)


@every
def test_ops_have_runtime_and_device_time(case: str) -> None:
    report = report_of(case)
    assert report.coverage.runtime is not None and report.coverage.runtime >= 0.99
    assert sum(row.device_self_ns for row in report.ops.rows) > 0
    assert report.profile.devices == [{"name": "NVIDIA H200", "count": 1, "used": 1}]


@pytest.mark.parametrize("case", ["torch", "torch_compile", "torch_compile_graphs", "triton", "torch_ddp"])
def test_memory_of_torch_is_covered(case: str) -> None:
    report = report_of(case)
    assert report.coverage.memory is not None and report.coverage.memory >= 0.95
    assert any(row.device_kind == "gpu" and (row.peak_bytes or 0) > 1 << 24 for row in report.memory.devices)


def test_where_memory_is_not_covered_the_reason_is_told() -> None:
    """XLA allocates for a program as a whole, and a CUDA graph that is replayed allocates nothing."""
    reasons = {case: " ".join(gap.reason for gap in report_of(case).coverage.gaps) for case in STEPS}
    assert "A compiled program takes its memory as a whole" in reasons["jax"]
    assert "No allocation was recorded" in reasons["torch_graphs"]
    assert any(row.source == "hlo" and row.peak_bytes for row in report_of("jax").memory.devices)


@pytest.mark.parametrize("case", TWO_PROCESSES)
def test_two_processes_are_ranks_of_one_run(case: str) -> None:
    report = report_of(case)
    assert (report.profile.ranks, report.profile.world_size) == ([0, 1], 2)
    assert [row.rank for row in report.steps.rows].count(1) == STEPS[case]
    notes = [trace.info.capture for trace in traces_of(case)]
    assert [note["rank"] for note in notes] == [0, 1]
    assert len({note["run"] for note in notes}) == 1 and len({note["pid"] for note in notes}) == 2


def test_the_steps_of_two_processes_meet_in_their_collectives() -> None:
    assert {row.name for row in report_of("torch_ddp").collectives.rows} == {"all_reduce"}


@pytest.mark.parametrize("case", ["torch", "torch_compile", "torch_compile_graphs", "triton"])
def test_annotations_are_phases(case: str) -> None:
    phases = {row.name: row for row in report_of(case).phases}
    assert set(phases) >= PHASES
    assert all(phases[name].calls == STEPS[case] and phases[name].parts for name in PHASES)
    told = capture_of(case)["phases"]
    assert all(told[name]["calls"] == STEPS[case] for name in PHASES)


def test_annotations_in_a_traced_function_are_scopes() -> None:
    report = report_of("jax")
    assert {row.name for row in report.phases} == {"update"}
    assert any("jvp(forward)" in (row.scope or "") for row in report.ops.rows)


def test_a_replayed_graph_has_its_kernels() -> None:
    """One launch and no op for each: the kernels are all that shows what is in a graph."""
    report = report_of("torch_graphs")
    assert {row.name for row in report.phases} == {"replay"}
    launched = traces_of("torch_graphs")[0].events.filter(
        pl.col("name").cast(pl.String).str.starts_with("cudaGraphLaunch")
    )
    assert len(launched) == STEPS["torch_graphs"]
    assert sum(row.calls for row in report.kernels.rows) > 20 * len(launched)


def test_compiled_ops_run_as_a_graph() -> None:
    rows = report_of("torch_compile").ops.rows
    fused = [row for row in rows if row.name.startswith("triton_") and row.device_self_ns]
    assert fused and all(row.execution == "graph" for row in fused)
    assert op_of("torch_compile", "aten::addmm").execution == "graph"


def test_compiled_graphs_belong_to_their_launch_and_their_compiled_function() -> None:
    forward, backward = (
        op_of("torch_compile_graphs", f"CompiledFunction{pass_}") for pass_ in ("", "Backward")
    )
    assert forward.device_total_ns > 0 and backward.device_total_ns > 0
    kernels = report_of("torch_compile_graphs").kernels.rows
    assert any(row.name.startswith("triton_") and row.op == "cudaGraphLaunch (17 nodes)" for row in kernels)


def test_a_triton_kernel_is_an_op_under_its_own_name() -> None:
    op = op_of("triton", "my_double")
    assert (op.calls, op.device_self_ns) == (5, 4607)
    assert op.host_total_ns > op.device_total_ns
    kernels = report_of("triton").kernels.rows
    assert [row.calls for row in kernels if row.name == "double_kernel" and row.op == "my_double"] == [5]


def test_an_op_has_two_figures_of_memory(tmp_path: Path) -> None:
    """The allocator hands out 10 KiB a call from what it holds already, so the device sees nothing of it."""
    op = op_of("triton", "my_double")
    assert (op.allocator_delta_bytes, op.device_delta_bytes) == (5 * 10240, 0)
    assert op_of("triton", "aten::mm").allocator_delta_bytes is None
    report_of("triton").save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "allocator change" in text and "device change" in text


def test_figures_of_ops_are_summed_over_ranks_and_not_split() -> None:
    alone, both = op_of("jax", "my_reduce"), op_of("jax_two", "my_reduce")
    assert (alone.calls, both.calls) == (5, 10)
    assert alone.device_self_ns > 0 and alone.memory_bytes
    notes = [trace.info.capture["ops"]["my_reduce"] for trace in traces_of("jax_two")]
    assert both.allocator_delta_bytes == sum(note["allocator_delta_bytes"] for note in notes)
    assert both.device_delta_bytes == sum(note["device_delta_bytes"] for note in notes)


@every
def test_the_slowdown_is_estimated(case: str) -> None:
    """The steps around the window were timed without a wait for the device: their lengths are the host's alone."""
    steps = report_of(case).steps
    assert steps.inflation_source == "estimated"
    assert steps.inflation is not None and steps.inflation > 1


@every
def test_the_sidecar_tells_device_and_versions(case: str) -> None:
    note = capture_of(case)
    (device,) = note["devices"]
    assert (device["name"], device["kind"]) == ("NVIDIA H200", "gpu") and device["memory_bytes"] > 1 << 35
    assert note["versions"][note["backend"]]
    assert note["telemetry"]["gpus"] == [{"index": 0, "name": "NVIDIA H200", "power_limit_watts": 700.0}]
    assert note["end_unix_ns"] > note["start_unix_ns"] and abs(note["clock"]["drift_ns"]) < 1_000_000


@pytest.mark.parametrize("case", [name for name in STEPS if name not in ("torch_graphs", "torch_jax")])
def test_the_wait_for_input_is_there(case: str) -> None:
    report, told = report_of(case), capture_of(case)["input"]
    assert told["batches"] == STEPS[case] and told["wait_ns"] > 0
    assert report.input.stages[0].name == "input_pipeline"
    assert all(row.parts["input"] > 0 for row in report.steps.rows)


def test_two_frameworks_are_two_profiles_of_which_one_has_the_gpu() -> None:
    problems = {problem.code for problem in report_of("torch_jax").problems}
    assert "gpu-traced-once" in problems
    of_jax = stepscope.load(str(RECORDED / "torch_jax" / "plugins")).traces[0]
    assert of_jax.info.capture["backend"] == "jax" and of_jax.kernels.is_empty()
    assert capture_of("torch_jax")["run"] == of_jax.info.capture["run"]
