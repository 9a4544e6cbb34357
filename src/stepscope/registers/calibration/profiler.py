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

# What is left of the recorded time of dispatch without the profiler: at best, as expected, at worst.
_LEFT = "share of the recorded time of dispatch"
_FIFTEEN = "true / recorded time of dispatch in 15 jobs, PyTorch's profiler with shapes, memory and stacks"


DISPATCH_LEFT_WITH_STACKS_LOW = measured(
    "DISPATCH_LEFT_WITH_STACKS_LOW",
    0.4,
    unit=_LEFT,
    device=_H200,
    how=_FIFTEEN,
    when=_WHEN,
    seen="0.36 to 0.73 in 14 of 15 jobs; one factor, left out: 0.58",
)
DISPATCH_LEFT_WITH_STACKS_MID = measured(
    "DISPATCH_LEFT_WITH_STACKS_MID",
    0.58,
    unit=_LEFT,
    device=_H200,
    how=_FIFTEEN,
    when=_WHEN,
    seen="0.36 to 0.73 in 14 of 15 jobs; one factor, left out: 0.58",
)
DISPATCH_LEFT_WITH_STACKS_HIGH = measured(
    "DISPATCH_LEFT_WITH_STACKS_HIGH",
    0.73,
    unit=_LEFT,
    device=_H200,
    how=_FIFTEEN,
    when=_WHEN,
    seen="0.36 to 0.73 in 14 of 15 jobs; one factor, left out: 0.58",
)
DISPATCH_LEFT_WITH_OPS_LOW = measured(
    "DISPATCH_LEFT_WITH_OPS_LOW",
    0.55,
    unit=_LEFT,
    device=_H200,
    how="unprofiled step / step with ops and device activity alone, host-bound jobs",
    when=_WHEN,
    seen="1 / 1.7 to 1 / 1.2",
)
DISPATCH_LEFT_WITH_OPS_MID = measured(
    "DISPATCH_LEFT_WITH_OPS_MID",
    0.7,
    unit=_LEFT,
    device=_H200,
    how="unprofiled step / step with ops and device activity alone, host-bound jobs",
    when=_WHEN,
    seen="1 / 1.7 to 1 / 1.2",
)
DISPATCH_LEFT_WITH_OPS_HIGH = measured(
    "DISPATCH_LEFT_WITH_OPS_HIGH",
    0.85,
    unit=_LEFT,
    device=_H200,
    how="unprofiled step / step with ops and device activity alone, host-bound jobs",
    when=_WHEN,
    seen="1 / 1.7 to 1 / 1.2",
)
DISPATCH_LEFT_JAX_LOW = measured(
    "DISPATCH_LEFT_JAX_LOW",
    0.65,
    unit=_LEFT,
    device=_JAX,
    how="unprofiled step / step with host and Python tracers, a step of 161 µs",
    when=_WHEN,
    seen="161 of 197 to 229 µs",
)
DISPATCH_LEFT_JAX_MID = measured(
    "DISPATCH_LEFT_JAX_MID",
    0.76,
    unit=_LEFT,
    device=_JAX,
    how="unprofiled step / step with host and Python tracers, a step of 161 µs",
    when=_WHEN,
    seen="161 of 197 to 229 µs",
)
DISPATCH_LEFT_JAX_HIGH = measured(
    "DISPATCH_LEFT_JAX_HIGH",
    0.87,
    unit=_LEFT,
    device=_JAX,
    how="unprofiled step / step with host and Python tracers, a step of 161 µs",
    when=_WHEN,
    seen="161 of 197 to 229 µs",
)
DISPATCH_LEFT_LEAST = measured(
    "DISPATCH_LEFT_LEAST",
    0.25,
    unit=_LEFT,
    device=_H200,
    how=_FIFTEEN + "; below all of them",
    when=_WHEN,
    seen="0.36 at least",
)
FITTED_DISPATCH_ERROR = measured(
    "FITTED_DISPATCH_ERROR",
    0.15,
    unit="share of the fitted time",
    device=_H200,
    how="error of the unprofiled step against runs of the same process (benchmarks/steps/unprofiled.py), 36 recordings",
    when="2026-11-16",
    seen="host-bound 5 % in the median, 9 of 10 within 21 %",
)
EVENT_COST_FAST = measured(
    "EVENT_COST_FAST",
    1.5,
    unit="× the cost per event",
    device=_H200,
    how="the scale a job needs",
    when=_WHEN,
    seen="1.1 to 2.5 between jobs of one hour",
)
EVENT_COST_SLOW = measured(
    "EVENT_COST_SLOW",
    0.6,
    unit="× the cost per event",
    device=_H200,
    how="the scale a job needs",
    when=_WHEN,
    seen="0.6 on a quiet day",
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
LIGHT_ERROR = measured(
    "LIGHT_ERROR",
    0.06,
    unit="share of the host's time in a light window",
    device=_H200,
    how="host time of a light window against unprofiled steps, by benchmarks/overhead/light.py; what the replay misses beyond is REPLAY_ERROR",
    when="2026-11-16",
    seen="6 % in the first recording",
)
LIGHT_LEFT_LEAST = measured(
    "LIGHT_LEFT_LEAST",
    0.6,
    unit="share of the host's time in a light window",
    device=_H200,
    how="unprofiled step / step with device activity alone, host-bound jobs; below all of them",
    when=_WHEN,
    seen="1 / 1.3 to 1; 0.68 by the host's own lengths in a device-bound job",
)
LIGHT_LEFT_LEAST_ALONE = measured(
    "LIGHT_LEFT_LEAST_ALONE",
    0.45,
    unit="share of the host's time in a light window",
    device=_H200,
    how="the host's own unprofiled step / its step in the light window, 73 jobs of PyTorch; below all but one, whose step is one launch of a graph",
    when="2026-11-17",
    seen="0.50 to 0.59 in seven, 0.61 to 1.04 in the others",
)
LIGHT_LEFT_MOST = measured(
    "LIGHT_LEFT_MOST",
    1.15,
    unit="share of the host's time in a light window",
    device=_H200,
    how="unprofiled runs before and after a window of the same process differ by so much",
    when=_WHEN,
    seen="8 to 13 % in the median",
)
WARM_DISPATCH = measured(
    "WARM_DISPATCH",
    0.7,
    unit="× the time of dispatch",
    device=_H200,
    how="dispatch of jobs before and after a long interval of the host was removed: at best, but for two jobs",
    when="2026-11-16",
    seen="0.50 to 1.03",
)
WARM_DISPATCH_WORST = measured(
    "WARM_DISPATCH_WORST",
    0.9,
    unit="× the time of dispatch",
    device=_H200,
    how="as WARM_DISPATCH: all but few of these jobs dispatch faster afterwards",
    when="2026-11-17",
    seen="0.50 to 1.03",
)
BUSY_DISPATCH = measured(
    "BUSY_DISPATCH",
    0.75,
    unit="× the time of dispatch",
    device=_H200,
    how="the host's own step before a change on the device that leaves it the slower one, against the step after it: eleven jobs of PyTorch",
    when="2026-11-17",
    seen="0.63 to 0.85 in seven, 0.94 to 1.0 in the others",
)
BUSY_DISPATCH_WORST = measured(
    "BUSY_DISPATCH_WORST",
    0.9,
    unit="× the time of dispatch",
    device=_H200,
    how="as BUSY_DISPATCH: where the host waited for much of the step before, all but one of these jobs dispatch faster afterwards",
    when="2026-11-17",
    seen="0.63 to 0.85 in seven, 0.94 to 1.0 in the others",
)
WARM_DISPATCH_BESIDE_WORKERS = measured(
    "WARM_DISPATCH_BESIDE_WORKERS",
    0.8,
    unit="× the time of dispatch",
    device=_H200,
    how="as WARM_DISPATCH, while processes of a DataLoader run beside the loop, which slow it 1.0 to 1.3 times; two jobs",
    when="2026-11-16",
    seen="0.75 and 1.4 in two jobs with 12 workers on 16 cores",
)
REPLAY_ERROR = measured(
    "REPLAY_ERROR",
    0.07,
    unit="share of the step that is left",
    device=_H200,
    how="replay of the unchanged step against the unprofiled one of the same process, host-bound jobs of two blind trials: median",
    when="2026-11-16",
    seen="0.07 and 0.08",
)
REPLAY_ERROR_OF_DEVICE = measured(
    "REPLAY_ERROR_OF_DEVICE",
    0.03,
    unit="share of the step that is left",
    device=_H200,
    how="the same of device-bound jobs",
    when="2026-11-16",
    seen="0.02 and 0.05",
)
REPLAY_ERROR_UNKNOWN_STEP = measured(
    "REPLAY_ERROR_UNKNOWN_STEP",
    0.13,
    unit="share of the step that is left",
    device=_H200,
    how="the same of host-bound jobs that the framework's own profiler recorded, without unprofiled steps",
    when="2026-11-16",
    seen="0.13 and 0.14",
)
LACKING_THAT_GOES = measured(
    "LACKING_THAT_GOES",
    0.5,
    unit="share of the lacking time, as a logarithm",
    device=_H200,
    how="gains of 9 host-bound jobs whose replay was more than 5 % shorter than the unprofiled step: median of gain over replay's ratio 1.27, over step by replayed remainder 1.08; between the two for the least error",
    when="2026-11-17",
    seen="median error 0.24, 0.18 and 0.21 with 0, 0.5 and 1, as a logarithm",
)
MOST_LACKING = measured(
    "MOST_LACKING",
    1.2,
    unit="× the replayed step",
    device=_H200,
    how="unprofiled step against the replayed one, most of 105 jobs of five blind trials but one, which lacked more and gained no more for it",
    when="2026-11-17",
    seen="1.18, and 1.52 of that one",
)
