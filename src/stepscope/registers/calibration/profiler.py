"""What recording adds to the host's time."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11"
_JAX = "NVIDIA H200 and its host, JAX 0.11"
_JOBS = "chosen while looking at jobs with a planted bottleneck and their fixes (benchmarks/diagnosis)"
_COST = "benchmarks/diagnosis/calibrate.py: tiny kernels with and without the profiler; rounded median"
_DAILY = "half as much again on another day"
_WHEN = "2026-11-15"

PROFILED_LAUNCH_COST_NS = measured(
    "PROFILED_LAUNCH_COST_NS",
    4_600,
    unit="ns per launch, with the record of its work",
    device=_H200,
    how=_COST,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_OP_COST_NS = measured(
    "PROFILED_OP_COST_NS", 2_000, unit="ns per op", device=_H200, how=_COST, when=_WHEN, seen=_DAILY
)
PROFILED_RUNTIME_COST_NS = measured(
    "PROFILED_RUNTIME_COST_NS",
    1_000,
    unit="ns per other runtime call",
    device=_H200,
    how=_COST,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_PYTHON_COST_NS = measured(
    "PROFILED_PYTHON_COST_NS",
    500,
    unit="ns per Python frame",
    device=_H200,
    how=_COST,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_MEMORY_COST_NS = measured(
    "PROFILED_MEMORY_COST_NS",
    300,
    unit="ns per memory event",
    device=_H200,
    how=_COST,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_ANNOTATION_COST_NS = measured(
    "PROFILED_ANNOTATION_COST_NS",
    800,
    unit="ns per annotation",
    device=_H200,
    how=_COST,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_SPAN_COST_NS = measured(
    "PROFILED_SPAN_COST_NS",
    150,
    unit="ns per host span of XLA",
    device=_JAX,
    how=_JOBS,
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_JAX_CALL_COST_NS = measured(
    "PROFILED_JAX_CALL_COST_NS",
    700,
    unit="ns per Python call under JAX",
    device=_JAX,
    how=_JOBS + "; resuming a generator costs less",
    when=_WHEN,
    seen=_DAILY,
)
PROFILED_LAUNCH_NS = measured(
    "PROFILED_LAUNCH_NS",
    7_300,
    unit="ns per launch under the profiler",
    device=_H200,
    how="median of the recordings of calibrate.py: the host that the costs above are of",
    when=_WHEN,
    seen=_DAILY,
)
FASTEST_HOST = measured(
    "FASTEST_HOST", 0.3, unit="× the launch of the calibrated host", device="any host", how=CHOSEN
)
SLOWEST_HOST = measured(
    "SLOWEST_HOST", 2.0, unit="× the launch of the calibrated host", device="any host", how=CHOSEN
)
PROFILER_START_NS = measured(
    "PROFILER_START_NS",
    200_000,
    unit="ns",
    device="any host",
    how=CHOSEN + "; for so long a profiler is on before the first step begins",
)
SHORTEST_CALL_NS = measured(
    "SHORTEST_CALL_NS",
    1_000,
    unit="ns",
    device="any host",
    how=CHOSEN + "; shorter calls are about as long as the profiler's own record of them",
)
LIGHT_CLOCK_NS = measured(
    "LIGHT_CLOCK_NS",
    50_000,
    unit="ns",
    device=_H200,
    how="ends of recorded steps against the same moments by the job's clock, in 11 recordings (tests/fixtures/capture_gpu)",
    when="2026-11-16",
    seen="50 to 101 µs, with the code between the two",
)
