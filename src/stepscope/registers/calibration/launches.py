"""Launches, waits, copies, and what runtimes and writers of profiles do."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11"
_JAX = "NVIDIA H200 and its host, JAX 0.11"
_JOBS = "chosen while looking at jobs with a planted bottleneck and their fixes (benchmarks/diagnosis)"
_WHEN = "2026-11-15"

# Launches and waits.
LAUNCH_LATENCY_NS = measured(
    "LAUNCH_LATENCY_NS",
    10_000,
    unit="ns",
    device="V100, A100, H200, B200",
    how="p10 of the delays from launch to start in profiles of jobs that leave the device idle; this is a bound above all of them",
    when="2026-11-16",
    seen="p10 0.2 to 6.2 µs, median 0.9 to 3.0 µs",
)
LATEST_LAUNCH_NS = measured(
    "LATEST_LAUNCH_NS",
    100_000,
    unit="ns",
    device="any device",
    how=CHOSEN
    + "; an idle device is reached within microseconds, so a first record that comes later had others before it",
)
BLOCKED_LAUNCH_NS = measured(
    "BLOCKED_LAUNCH_NS",
    60_000,
    unit="ns",
    device="any device",
    how=CHOSEN + "; a launch that takes as long waits for something",
)
LATE_WAIT_NS = measured(
    "LATE_WAIT_NS",
    1_000_000,
    unit="ns",
    device=_JAX,
    how="how long waits go on while the device is idle, in five recordings of jobs that wait; in one of them eight last 2 to 9.5 ms, and "
    "without those 33 % the replay is right (measured 3.5×, promised 4.5 to 5.4×)",
    when="2026-11-19",
    seen="0.02 to 0.5 ms; on eight MI300X, of which each waits for one kernel of 0.4 ms, 11 to 44 ms",
)
STILL_WORKING_NS = measured(
    "STILL_WORKING_NS",
    50_000,
    unit="ns",
    device="any device",
    how=CHOSEN
    + "; work that goes on for so long after a wait was not waited for: clocks of host and device differ by less",
)
LONGEST_QUEUE_GAP_NS = measured(
    "LONGEST_QUEUE_GAP_NS",
    10_000,
    unit="ns",
    device="any device",
    how="gaps between queued kernels of one stream in 17 recordings of an H200; longer ones wait for another stream",
    when="2026-11-17",
    seen="1.0 to 1.5 µs under PyTorch, -1.4 to 0.8 µs under JAX, where kernels overlap",
)
FULL_QUEUE_TIMES = measured(
    "FULL_QUEUE_TIMES",
    8,
    unit="× the median launch",
    device="any device",
    how=CHOSEN + "; such a launch waits for room in a full queue",
)
GRAPH_GAP_BEST_NS = measured(
    "GRAPH_GAP_BEST_NS",
    300,
    unit="ns between two kernels of a graph",
    device=_H200,
    how=_JOBS,
    when=_WHEN,
    seen="300 to 1,000 ns in jobs recorded later",
)
GRAPH_GAP_WORST_NS = measured(
    "GRAPH_GAP_WORST_NS",
    1_000,
    unit="ns between two kernels of a graph",
    device=_H200,
    how=_JOBS,
    when=_WHEN,
    seen="300 to 1,000 ns in jobs recorded later",
)
PROGRAM_GAP_BEST_NS = measured(
    "PROGRAM_GAP_BEST_NS",
    2_000,
    unit="ns between two kernels of an XLA program",
    device=_JAX,
    how="gaps inside programs of recorded JAX jobs",
    when=_WHEN,
    seen="2 to 5 µs",
)
PROGRAM_GAP_WORST_NS = measured(
    "PROGRAM_GAP_WORST_NS",
    4_000,
    unit="ns between two kernels of an XLA program",
    device=_JAX,
    how="gaps inside programs of recorded JAX jobs, but for the longest: four jobs that ran op by op gained more than 5 µs allow",
    when=_WHEN,
    seen="2 to 5 µs",
)
FUSED_GAP_BEST_NS = measured(
    "FUSED_GAP_BEST_NS",
    0,
    unit="ns before a kernel that was an op by itself, in the program that fuses it",
    device=_JAX,
    how="mean gap between kernels inside runs of programs, in 26 JAX jobs of two blind trials",
    when="2026-11-18",
    seen="medians -0.2 to 0.3 µs, 1.2 µs in one; means -0.5 to 0.9 µs, 2.1 and 2.3 µs in two",
)
FUSED_GAP_WORST_NS = measured(
    "FUSED_GAP_WORST_NS",
    1_000,
    unit="ns before a kernel that was an op by itself, in the program that fuses it",
    device=_JAX,
    how="as FUSED_GAP_BEST_NS, above all but two of the means",
    when="2026-11-18",
    seen="medians -0.2 to 0.3 µs, 1.2 µs in one; means -0.5 to 0.9 µs, 2.1 and 2.3 µs in two",
)
WHILE_TURN_BEST_NS = measured(
    "WHILE_TURN_BEST_NS",
    10_000,
    unit="ns per turn of a while loop, beside its body",
    device=_JAX,
    how="unprofiled step of one job with jax.lax.while_loop, less the recorded runs of the same body called from Python, by its 68 turns; the bounds are chosen around it",
    when="2026-11-18",
    seen="14.8 µs; presumably the host reads the condition before it launches the next turn, but the loop itself was not recorded",
)
WHILE_TURN_WORST_NS = measured(
    "WHILE_TURN_WORST_NS",
    20_000,
    unit="ns per turn of a while loop, beside its body",
    device=_JAX,
    how="as WHILE_TURN_BEST_NS",
    when="2026-11-18",
    seen="14.8 µs; presumably the host reads the condition before it launches the next turn, but the loop itself was not recorded",
)
_TURN_LAUNCHES = {
    "unit": "share of what launching the kernels of a call takes the host",
    "device": _JAX,
    "how": "turn of jax.lax.fori_loop without the profiler, against the part of a call of the same body from Python in which XLA launches its kernel and two copies: five rounds of one job of a blind trial",
    "when": "2026-11-19",
    "seen": "0.76 to 0.93, with the launch that counts the turns",
}
TURN_LAUNCHES_LEAST = measured("TURN_LAUNCHES_LEAST", 0.75, **_TURN_LAUNCHES)
TURN_LAUNCHES_MOST = measured("TURN_LAUNCHES_MOST", 0.95, **_TURN_LAUNCHES)
LEAST_WAIT_CALL_NS = measured(
    "LEAST_WAIT_CALL_NS",
    3_000,
    unit="ns",
    device=_H200,
    how="a call that finds the device idle returns sooner, and has not waited",
    when=_WHEN,
    seen="1 to 2 µs",
)
SHORT_READ_NS = measured(
    "SHORT_READ_NS",
    20_000,
    unit="ns of device work",
    device=_H200,
    how="copies and reductions that make a value which is read",
    when=_WHEN,
    seen="2 to 10 µs",
)
GRAPH_LAUNCH_NS = measured(
    "GRAPH_LAUNCH_NS",
    20_000,
    unit="ns per launch of a whole graph or program",
    device=_H200,
    how=_JOBS,
    when=_WHEN,
)
FIRST_CALL_NS = measured(
    "FIRST_CALL_NS",
    200_000,
    unit="ns",
    device=_H200,
    how=_JOBS + "; a later call of the same op takes less",
    when=_WHEN,
)
_LATER_RUNS = {
    "unit": "share of the first run",
    "device": "CPU with two cores",
    "how": "runs of programs of JAX right after they were compiled, and later ones: six training steps, and 17 programs of all kinds (perceptrons and their gradients, convolutions, attention, scans, elementwise work) of 0.6 to 1,400 ms, others using the cores as well",
    "when": "2026-11-19",
    "seen": "0.19 to 0.49, median 0.34, of the training steps; of the others less than 0.1 where later runs take less than 1 ms, 0.3 to 0.6 where they take 1 to 5 ms, 0.6 to 1.0 where they take more than 50 ms: most first runs take 3 to 30 ms longer",
}
LATER_RUN_LEAST = measured("LATER_RUN_LEAST", 0.2, **_LATER_RUNS)
LATER_RUN_MOST = measured("LATER_RUN_MOST", 0.9, **_LATER_RUNS)
KERNEL_LOAD_NS = measured(
    "KERNEL_LOAD_NS",
    1_000_000,
    unit="ns of a call that launches one kernel while no device works",
    device="V100 to B200, MI250 to MI350",
    how="all such calls of two corpora of public profiles; a longer one loads the kernel's code first",
    when="2026-11-18",
    seen="6.5 ms where a step was recorded without warm-up; no other above 0.5 ms",
)
FRAMEWORK_PAUSE_NS = measured(
    "FRAMEWORK_PAUSE_NS",
    100_000,
    unit="ns",
    device="any host",
    how=CHOSEN + "; shorter pauses between events are the framework's own",
)
EAGER_PAUSE_NS = measured(
    "EAGER_PAUSE_NS",
    500_000,
    unit="ns between two ops",
    device="CPU, TensorFlow 2.21",
    how="seen in eager Keras under a profiler, which takes hundreds of µs; more is work of its own",
    when=_WHEN,
    seen="µs (PyTorch) to hundreds of µs (Keras)",
)
EMPTY_KERNEL_RUN_NS = measured(
    "EMPTY_KERNEL_RUN_NS",
    30_000,
    unit="ns",
    device="CPU, TensorFlow 2.21",
    how="runs of kernels that compute next to nothing (Shape, Reshape, ReadVariableOp, products of scalars) in an eager training step, under the profiler",
    when="2026-11-18",
    seen="median 13 to 20 µs, p90 16 to 24 µs; those of tensors with work from 100 µs",
)
HOST_OP_NS = measured(
    "HOST_OP_NS",
    50_000,
    unit="ns",
    device=_H200,
    how=_JOBS + "; ops that only look at tensors, and launch nothing, take less",
    when=_WHEN,
)
LONG_HOST_NS = measured(
    "LONG_HOST_NS",
    300_000,
    unit="ns without a launch",
    device=_H200,
    how=_JOBS + "; between two launches of one loop the host takes less, also under a profiler",
    when="2026-11-16",
)
LEAST_RECORDED_WAIT_NS = measured(
    "LEAST_RECORDED_WAIT_NS",
    3_000,
    unit="ns",
    device=_H200,
    how=_JOBS + "; a call that asks a device which is done already takes less",
    when="2026-11-16",
)
WAIT_ENDS_WITHIN_NS = measured(
    "WAIT_ENDS_WITHIN_NS",
    150_000,
    unit="ns after the device ran dry",
    device=_JAX,
    how=_JOBS + "; the least that a wait may end late",
    when=_WHEN,
    seen="p10 90, median 104, p90 152 µs after waits of 0.1 ms; longer waits end later",
)
WAIT_ENDS_WITHIN_SHARE = measured(
    "WAIT_ENDS_WITHIN_SHARE",
    0.2,
    unit="share of the wait",
    device=_JAX,
    how="time from the end of the device's work to the end of the silence, by its length, in JAX jobs with and without stacks",
    when="2026-11-16",
    seen="0.08 to 0.14 (218 to 363 µs after waits of 2.6 ms); 160 to 470 µs in other jobs",
)
WAIT_ENDS_LATEST_NS = measured(
    "WAIT_ENDS_LATEST_NS",
    1_000_000,
    unit="ns after the device ran dry",
    device=_JAX,
    how="twice the latest end that was seen; a thread that continues later has done something else",
    when="2026-11-16",
    seen="470 µs at most",
)
LEAST_WAIT_NS = measured(
    "LEAST_WAIT_NS", 30_000, unit="ns", device="any host", how=CHOSEN + "; a shorter silence shows nothing"
)
HIDDEN_WAIT_CALL_NS = measured(
    "HIDDEN_WAIT_CALL_NS",
    10_000_000,
    unit="ns without a call, inside an op",
    device=_H200,
    how=CHOSEN
    + "; ops that build code and then wait for the device to load it, such as attention of a new length in cuDNN, take longer",
    when="2026-11-19",
    seen="46 ms where the device had little to do, 113 to 121 ms where it had not",
)
HOST_DEVICE_CLOCK_NS = measured(
    "HOST_DEVICE_CLOCK_NS",
    2_000,
    unit="ns",
    device="any device",
    how=CHOSEN + "; rounding of the clocks of host and device",
    when="2026-11-16",
    seen="no work before its launch in 104 profiles",
)

# Dispatch without autograd.
WITHOUT_GRAPH_LEAST = measured(
    "WITHOUT_GRAPH_LEAST",
    0.75,
    unit="share of the dispatch",
    device=_H200,
    how="forward passes of layers with and without requires_grad, host time alone, medians of 60 passes, 5 rounds",
    when="2026-11-18",
    seen="convolutions 0.82 to 0.87, a transformer 0.76 to 0.85, linear layers 0.81 to 0.84; with autocast mostly 0.79 to 0.91",
)
WITHOUT_GRAPH_MOST = measured(
    "WITHOUT_GRAPH_MOST",
    0.9,
    unit="share of the dispatch",
    device=_H200,
    how="as WITHOUT_GRAPH_LEAST",
    when="2026-11-18",
    seen="as WITHOUT_GRAPH_LEAST",
)

# Copies between host and device.
PINNED_RATE_WORST = measured(
    "PINNED_RATE_WORST",
    25.0,
    unit="GB/s from pinned memory",
    device="PCIe 4 ×16",
    how="the bus's nominal rate; used where the profile has no pinned copy",
    when="2026-11-16",
    seen="42 to 55 GB/s in 8 profiles from the host of an H200 (PCIe 5)",
)
PINNED_RATE_BEST = measured(
    "PINNED_RATE_BEST",
    54.0,
    unit="GB/s from pinned memory",
    device="PCIe 5 ×16",
    how="large pinned copies; used where the profile has none",
    when="2026-11-16",
    seen="42 to 55 GB/s in 8 profiles from the host of an H200 (PCIe 5)",
)
PAGEABLE_RATE_WORST = measured(
    "PAGEABLE_RATE_WORST",
    5.0,
    unit="GB/s from pageable memory",
    device=_H200,
    how="calls that copy 0.1 to 29 MB to the device, in profiles of four jobs of blind trials",
    when="2026-11-19",
    seen="4.7 for 0.1 MB, 6.5 and 8.4 for 0.2 MB, 12.5 for 29 MB",
)
PAGEABLE_RATE_BEST = measured(
    "PAGEABLE_RATE_BEST",
    12.5,
    unit="GB/s from pageable memory",
    device=_H200,
    how="as PAGEABLE_RATE_WORST",
    when="2026-11-19",
    seen="4.7 for 0.1 MB, 6.5 and 8.4 for 0.2 MB, 12.5 for 29 MB",
)
_STACKING = (
    "torch.stack and np.stack of 16 to 1,000 pieces of 64 B to 100 kB, medians of 30 calls on one core"
)
STACKED_PIECE_BEST_NS = measured(
    "STACKED_PIECE_BEST_NS",
    200,
    unit="ns for each piece",
    device="x86 core",
    how=_STACKING + ": pieces of 64 B",
    when="2026-11-19",
    seen="190 to 370 by torch.stack, 540 to 780 by np.stack",
)
STACKED_PIECE_WORST_NS = measured(
    "STACKED_PIECE_WORST_NS",
    1_000,
    unit="ns for each piece",
    device="x86 core",
    how=_STACKING + ": pieces of 64 B and 1 kB",
    when="2026-11-19",
    seen="190 to 380 by torch.stack, 540 to 990 by np.stack",
)
STACKED_RATE_BEST = measured(
    "STACKED_RATE_BEST",
    12.0,
    unit="GB/s",
    device="x86 core",
    how=_STACKING + ": what pieces of 10 and 100 kB take longer than those of 64 B",
    when="2026-11-19",
    seen="12 to 16 where all fits into the cache, 2 to 5 where it does not",
)
STACKED_RATE_WORST = measured(
    "STACKED_RATE_WORST",
    4.0,
    unit="GB/s",
    device="x86 core",
    how="as STACKED_RATE_BEST; batches of more than 10 MB, which take longer, are rare",
    when="2026-11-19",
    seen="12 to 16 where all fits into the cache, 2 to 5 where it does not",
)
STAGED_COPY_NS = measured(
    "STAGED_COPY_NS",
    20_000,
    unit="ns of a call that copies",
    device=_H200,
    how="a longer call copies on the host, into a buffer of the driver",
    when=_WHEN,
    seen="5 to 10 µs from pinned memory",
)
SAMPLE_FROM_MEMORY_NS = measured(
    "SAMPLE_FROM_MEMORY_NS",
    25_000,
    unit="ns of a loader per sample",
    device=_H200,
    how="rows of two or three tensors in memory, each picked by itself and collated, against windows that are cut and normalised, and against what is read or decoded",
    when="2026-11-18",
    seen="5 to 18 µs for rows in two jobs; 44 µs for windows, 0.8 ms and more for features and pictures",
)
SAMPLE_ALONE_NS = measured(
    "SAMPLE_ALONE_NS",
    1_000,
    unit="ns of a loader per sample",
    device="CPU, 2 cores",
    how="least time of a DataLoader of PyTorch 2.13 to pick and collate one sample from memory, in batches of 4096",
    when="2026-11-18",
    seen="2.1 to 6.0 µs for rows, 0.5 to 1.2 µs for single numbers; 0.26 to 0.40 µs where a data set makes whole batches",
)
LARGE_COPY_BYTES = measured(
    "LARGE_COPY_BYTES",
    1 << 20,
    unit="bytes",
    device="any device",
    how=CHOSEN + "; smaller copies take their latency, and do not show the rate of the bus",
)
OVERLAP_IN_TURN_MOST = measured(
    "OVERLAP_IN_TURN_MOST",
    0.01,
    unit="share of the time of a stream's copies",
    device="NVIDIA H200, JAX 0.11",
    how="two jobs that pass arrays of NumPy to a jitted function in each step, and launch ahead of the device: the copies wait for the kernels of the step before, and its kernels for them",
    when="2026-11-20",
    seen="0 of 142 copies run beside a kernel, although the host launched most of them while kernels ran",
)

# Writers and runtimes.
TRACE_JSON_EVENTS = measured(
    "TRACE_JSON_EVENTS",
    1_000_000,
    unit="events",
    device="TensorFlow's profiler",
    how="read in its source: trace.json.gz keeps the first million events and drops the rest silently",
)
AGREED_RUN_ID = measured(
    "AGREED_RUN_ID",
    1 << 20,
    unit="run id",
    device="XLA",
    how=CHOSEN
    + "; processes that run one program together agree on a hash as its number, one alone counts from 0",
)
UNSTEADY_OP_NS = measured(
    "UNSTEADY_OP_NS",
    100_000,
    unit="ns",
    device="CPU, TensorFlow 2.21",
    how="repeated recordings (benchmarks/diff): TensorFlow records a shorter op of the host only now and then",
    when=_WHEN,
)

# Anomaly detection: each op of the forward pass that makes a node of the graph also formats a stack of Python, frame by frame.
_ANOMALY = {
    "unit": "share of the host's time of forward ops",
    "device": "x86 CPU, PyTorch 2.13, Python 3.11; not measured beside a GPU, where the code is the same",
    "how": "processor time of the forward pass of 12 layers (52 nodes, tensors so small that dispatch decides) without and with it, one thread, called 0, 10 and 30 functions deep",
    "when": "2026-11-19",
    "seen": "0.067, 0.043 and 0.028",
}
WITHOUT_ANOMALY_LEAST = measured("WITHOUT_ANOMALY_LEAST", 0.03, **_ANOMALY)
WITHOUT_ANOMALY_MOST = measured("WITHOUT_ANOMALY_MOST", 0.12, **_ANOMALY)
