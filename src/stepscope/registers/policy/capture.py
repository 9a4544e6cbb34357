"""From which share on a defect of the capture is reported."""

from __future__ import annotations

from stepscope.registers.entry import policy

DEFECT_SHOWN = policy(
    "DEFECT_SHOWN",
    0.01,
    unit="share of launches or kernels",
    why="a recording always begins and ends in the middle of something",
)
DEFECT_WARNS = policy(
    "DEFECT_WARNS",
    0.05,
    unit="share of launches or kernels",
    why="from here on figures are off by about as much: a warning",
)
WORK_OF_CUT_STEP = policy(
    "WORK_OF_CUT_STEP",
    0.8,
    unit="share of the device's events of the fullest step",
    why="in a file that is cut off, a step with less has lost some: with half of the kernels the host seems to be twice too slow",
)
COVERAGE_GAP = policy("COVERAGE_GAP", 0.005, unit="share missing", why="less would round to 100 %")
GRAPHS_HIDE_OPS = policy(
    "GRAPHS_HIDE_OPS",
    0.05,
    unit="share of the kernels' time",
    why="in kernels that graphs launched and that belong to no op: less hides nothing of interest",
)
MOSTLY_PYTHON = policy(
    "MOSTLY_PYTHON", 0.8, unit="share of events", why="Python calls that crowd out all else"
)
MANY_EVENTS = policy(
    "MANY_EVENTS", 100_000, unit="events", why="a smaller file is not a burden, whatever it holds"
)
UNPROFILED_STEPS = policy(
    "UNPROFILED_STEPS",
    20,
    unit="steps",
    why="in a run between two waits for the device: with fewer, the filling queue decides its length",
)
UNPROFILED_NS = policy(
    "UNPROFILED_NS",
    1_000_000_000,
    unit="ns",
    why="a run that lasts so long is enough, whatever its number of steps",
)
UNPROFILED_AGREES = policy(
    "UNPROFILED_AGREES",
    0.15,
    unit="share of the run before",
    why="a run after the window that differs by more was sped up by batches made while the file was written",
)
UNPROFILED_HOST_BOUND = policy(
    "UNPROFILED_HOST_BOUND",
    0.85,
    unit="share of an unprofiled step",
    why="that is the host's own from which on the host decides how long a step takes, and its drift counts",
)
BEFORE_QUEUE_IS_FULL = policy(
    "BEFORE_QUEUE_IS_FULL",
    0.93,
    unit="share of the later steps",
    why="below which the host's first steps after a wait are its own, if later ones all take as long as the device",
)
STEADY_DEVICE = policy(
    "STEADY_DEVICE",
    0.03,
    unit="share of a step",
    why="within which steps that the device decides about differ; those of a host scatter more",
)
MOSTLY_STEADY = policy(
    "MOSTLY_STEADY",
    0.7,
    unit="share of the steps",
    why="that are as long as the device needs: few are cut by bursts",
)
NAMED_PROCESSES = policy("NAMED_PROCESSES", 5, unit="processes", why="that a sentence lists")
LIGHT_AGREES = policy(
    "LIGHT_AGREES",
    0.95,
    unit="share of launches",
    why="that a light window must have in common with the full one; with less, other steps were recorded",
)
LIGHT_LONGEST = policy(
    "LIGHT_LONGEST",
    1.1,
    unit="× the full window's host time",
    why="host time varies by a tenth between minutes; a light window that took longer shows something else than its lower cost",
)
LIGHT_THREAD_SHARE = policy(
    "LIGHT_THREAD_SHARE",
    0.1,
    unit="share of launches",
    why="threads that launch less run beside the others, and do not take turns with them",
)
LIGHT_UNSEEN_SHARE = policy(
    "LIGHT_UNSEEN_SHARE",
    0.1,
    unit="share of a host interval",
    why="waits that only the full window shows; where they take more, the light window cannot say what the host's own time is",
)
LIGHT_MOST_FACTOR = policy(
    "LIGHT_MOST_FACTOR",
    10.0,
    unit="× the recorded time",
    why="before one launch: a longer light time belongs to something that the recorded step did elsewhere",
)
LIGHT_MOST_DIFFERENCES = policy(
    "LIGHT_MOST_DIFFERENCES",
    1_000,
    unit="launches of a step",
    why="that one window has and the other has not; the aligner keeps the square of it, which is then 8 MB",
)
SURE_WITHOUT_PROFILER = policy(
    "SURE_WITHOUT_PROFILER",
    1.3,
    unit="speed-up on the fastest host that the recording allows",
    why="without a timed unprofiled step: seven healthy jobs seemed to gain 1.00 to 1.25 there, the smallest of 17 true ones 1.78",
)
OTHER_STEPS = policy(
    "OTHER_STEPS",
    2.0,
    unit="unprofiled over recorded step",
    why="a profiler makes steps longer, never so much shorter: what held the unprofiled ones up is not in the recording",
)
