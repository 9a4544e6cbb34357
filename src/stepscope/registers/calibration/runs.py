"""What two recordings of one job differ by, beside the spread of their steps: standard errors."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

_DEVICE = "H200 and its host; 2-core CPU shared with other work"
_BENCH = "benchmarks/diff: repeated recordings of equal jobs, chosen so that 0 of 98 and 1 of 258 equal pairs differ"
_WHEN = "2026-11-15"

_DRIFT = (
    "benchmarks/trial: unprofiled rounds before and after the recording of jobs 01 to 20 against the sidecar's run; chosen so that the "
    "spread covers them in 34 of 36, then 27 of 28 of jobs 21 to 36"
)

UNPROFILED_DRIFT_DEVICE = measured(
    "UNPROFILED_DRIFT_DEVICE",
    0.04,
    unit="share of an unprofiled step, on either side, at least",
    device="H200",
    how=_DRIFT,
    when="2026-11-16",
    seen="0.002 in the median, 0.05 at most",
)
UNPROFILED_DRIFT_HOST = measured(
    "UNPROFILED_DRIFT_HOST",
    0.08,
    unit="share of an unprofiled step that the host decides, on either side, at least",
    device="H200's host, shared with other work",
    how=_DRIFT,
    when="2026-11-16",
    seen="0.07 in the median, 0.28 at most but for one job of 0.79",
)
# Shares of a figure.
OP_NOISE_DEVICE = measured(
    "OP_NOISE_DEVICE",
    0.015,
    unit="share of one op's device time, at least",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
    seen="0.005 on a quiet H200",
)
OP_NOISE_HOST = measured(
    "OP_NOISE_HOST",
    0.015,
    unit="share of one op's host time, at least",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
    seen="0.05 to 0.3; 1 on a busy CPU. What is above is measured on the pair itself",
)
RUN_NOISE_DEVICE = measured(
    "RUN_NOISE_DEVICE",
    0.015,
    unit="share of sums of device time, at least",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
RUN_NOISE_HOST = measured(
    "RUN_NOISE_HOST",
    0.06,
    unit="share of sums of host time, at least",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
RUN_NOISE_NEITHER = measured(
    "RUN_NOISE_NEITHER",
    0.1,
    unit="share of waits that go by neither clock",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
UNKNOWN_NOISE_DEVICE = measured(
    "UNKNOWN_NOISE_DEVICE",
    0.02,
    unit="share of device time, where too few names show more",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
UNKNOWN_NOISE_HOST = measured(
    "UNKNOWN_NOISE_HOST",
    0.15,
    unit="share of host time, where too few names show more",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
VAGUE_NOISE = measured(
    "VAGUE_NOISE",
    0.25,
    unit="share of a name in dispatch, gaps or unexplained time",
    device=_DEVICE,
    how=_BENCH + "; to which name a short gap is charged is partly random",
    when=_WHEN,
)
NAMED_NOISE = measured(
    "NAMED_NOISE",
    0.12,
    unit="share of a name that the device waited for",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
UNEXPLAINED_NOISE = measured(
    "UNEXPLAINED_NOISE",
    0.01,
    unit="share of the step, in unexplained time",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
)
LINK_NOISE = measured(
    "LINK_NOISE",
    0.12,
    unit="share of the time of copies between host and device",
    device="H200 and its host, PCIe 5",
    how=_BENCH + "; depends on where the host's pages are",
    when=_WHEN,
    seen="95 of 100 pairs within 0.24",
)
HOST_NOISE_NS = measured(
    "HOST_NOISE_NS",
    2_500.0,
    unit="ns of host time",
    device=_DEVICE,
    how=_BENCH + "; caches, branch predictors, the profiler's own records",
    when=_WHEN,
)

# The speed of the machine.
SPEED_NOISE = measured(
    "SPEED_NOISE",
    0.06,
    unit="relative speed of the host",
    device=_DEVICE,
    how=_BENCH,
    when=_WHEN,
    seen="a host up to 0.65 slower in the next process",
)
WRONG_SPEED = measured(
    "WRONG_SPEED",
    0.5,
    unit="share of the logarithm of the speed",
    device=_DEVICE,
    how=_BENCH + "; the more speeds differ, the less they are the same for all calls",
    when=_WHEN,
)
LAG_SHARE = measured(
    "LAG_SHARE",
    0.5,
    unit="share of what the host's speed is worth",
    device=_DEVICE,
    how=_BENCH + "; a host that is hardly fast enough makes its device wait, or not",
    when=_WHEN,
)

# Memory.
DEVICE_MEMORY_NOISE = measured(
    "DEVICE_MEMORY_NOISE",
    0.02,
    unit="share of the peak",
    device="CUDA, PyTorch's caching allocator",
    how=_BENCH + "; the allocator rounds",
    when=_WHEN,
)
HOST_MEMORY_NOISE = measured(
    "HOST_MEMORY_NOISE",
    0.3,
    unit="share of the peak",
    device="2-core CPU",
    how=_BENCH + "; what a host holds at once depends on how its threads happen to run",
    when=_WHEN,
)
MEMORY_NOISE_BYTES = measured("MEMORY_NOISE_BYTES", 1 << 20, unit="bytes", device="any device", how=CHOSEN)

# Rounding, where both are one recording.
ROUNDED_NS = measured(
    "ROUNDED_NS",
    4,
    unit="ns per call",
    device="profile formats",
    how="ends of events are rounded, and so is what is left when their children's time is taken off",
    when=_WHEN,
)
ROUNDED_SHARE = measured(
    "ROUNDED_SHARE",
    2e-5,
    unit="share of a figure",
    device="profile formats",
    how="copies of 20 profiles with one op changed (benchmarks/diff)",
    when=_WHEN,
)
EXACT_SHARE = measured(
    "EXACT_SHARE",
    2e-4,
    unit="share of a figure",
    device="profile formats",
    how="copies of 20 profiles with one op changed (benchmarks/diff): differences below are rounding",
    when=_WHEN,
)
EXACT_LEAST = measured(
    "EXACT_LEAST",
    2e-5,
    unit="share of the step",
    device="profile formats",
    how="as EXACT_SHARE, of any difference",
    when=_WHEN,
)
EXACT_ERRORS = measured(
    "EXACT_ERRORS",
    4,
    unit="standard errors",
    device="profile formats",
    how=CHOSEN + "; EXACT_LEAST is taken as this number of them",
)
