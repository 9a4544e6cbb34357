"""When code of a job without a device is a finding, and what a fix may save of it."""

from __future__ import annotations

from stepscope.registers.entry import policy

DOMINANT_FUNCTION = policy(
    "DOMINANT_FUNCTION",
    0.5,
    unit="share of the step",
    why="in one function or op of a job without a device: making anything else faster gains less",
)
OWN_CODE = policy(
    "OWN_CODE",
    0.3,
    unit="share of the step",
    why="in one function of the user, beside a framework that computes on the same processor: below, what the framework does matters more",
)
OWN_CODE_SAVES_LEAST = policy(
    "OWN_CODE_SAVES_LEAST",
    0.5,
    unit="share of the owned time",
    why="that goes in any case, if Python code becomes ops of the framework: what it computes must still be computed",
)
OWN_CODE_SAVES = policy(
    "OWN_CODE_SAVES",
    0.8,
    unit="share of the owned time",
    why="that is expected to go there; 0.76 to 0.85 in rounds of one TensorFlow job, whose spectrograms NumPy computed frame by frame",
)

# Pictures among the arrays that are sent, by their shapes.
PICTURE_COLOURS = policy(
    "PICTURE_COLOURS",
    3,
    unit="channels",
    why="of pictures from cameras and files: red, green and blue; arrays with one are spectrograms and fields as well",
)
PICTURE_SIDE = policy(
    "PICTURE_SIDE",
    16,
    unit="pixels",
    why="of height and width at least, from which an array with three channels is taken for pictures: the smallest of common data sets have 28 or 32",
)
BESIDE_PIPELINE_SAVES = policy(
    "BESIDE_PIPELINE_SAVES",
    0.5,
    unit="share of the wait",
    why="that is expected to go on a CPU where threads make batches ahead already: between none, on cores that are all busy, and all, from a cache",
)
CORES_BUSY = policy(
    "CORES_BUSY",
    0.9,
    unit="share of the machine's cores",
    why="from which workers that make batches have no core left: 94 to 98 % in five jobs on 16 cores that unpacked data on all of them, at most 83 % in 50 others",
)
CORES_BUSY_WAIT = policy(
    "CORES_BUSY_WAIT",
    0.2,
    unit="share of the step",
    why="that waits for batches, from which the cores decide how fast steps follow one another",
)
SHORT_HOST_OP_NS = policy(
    "SHORT_HOST_OP_NS",
    50_000,
    unit="ns",
    why="a shorter op on a CPU takes most of its time to be called, not to compute",
)
BATCHED_LONG_OP_LEAST = policy(
    "BATCHED_LONG_OP_LEAST",
    0.5,
    unit="× the time of long ops in a loop",
    why="that one op for all turns takes at best: a larger product uses the cores better, but computes as much",
)
HOST_SCORES_LENGTH = policy(
    "HOST_SCORES_LENGTH",
    256,
    unit="rows of attention scores, on a CPU",
    why="below that the attention of PyTorch for CPUs is hardly faster than separate ops",
)
HOST_SCORES_LONG = policy(
    "HOST_SCORES_LONG",
    1024,
    unit="rows of attention scores, on a CPU",
    why="from here on the scores do not fit into the cache",
)
ELEMENTS_PER_STEP = policy(
    "ELEMENTS_PER_STEP",
    8,
    unit="calls of Python in a step",
    why="from which a generator yields single samples: one that yields batches, or files of many, is called less often",
)
CACHED_WORK_STAYS = policy(
    "CACHED_WORK_STAYS",
    0.1,
    unit="share of the wait",
    why="at worst, where a pipeline is read from a cache: its elements are still shuffled, copied into batches and counted",
)
RELIEF_COMES = policy(
    "RELIEF_COMES",
    0.5,
    unit="share of the relief, as a logarithm",
    why="that is expected where the work of a pipeline leaves the cores to the step: 0.3 to 1.5, 0.7 in the middle, in six jobs on two cores that others used too",
)
CONDITION_BYTES_MOST = policy(
    "CONDITION_BYTES_MOST",
    8,
    unit="bytes",
    why="of what a compiled program copies to the host to decide whether a loop in it goes on, or which branch it takes: a truth value or a number",
)
