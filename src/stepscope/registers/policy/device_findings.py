"""When a finding about kernels, batches, copies and memory is worth showing."""

from __future__ import annotations

from stepscope.registers.entry import policy

# Kernels and batches.
FUSING_GAIN_LEAST = policy(
    "FUSING_GAIN_LEAST", 0.05, unit="share of the step", why="that fusing formulas must save"
)
LOOP_ADVICE_LEAST = policy(
    "LOOP_ADVICE_LEAST",
    0.3,
    unit="share of the step",
    why="that small kernels of a loop inside a program must take: below that, what can leave the loop hardly changes the step",
)
TURNS_OF_LOOP = policy(
    "TURNS_OF_LOOP",
    64,
    unit="calls of one kernel in a step",
    why="layers of deep networks share a kernel some tens of times; sequences and rollouts have hundreds of turns",
)
FUSING_ADVICE_LEAST = policy(
    "FUSING_ADVICE_LEAST",
    0.1,
    unit="share of the step",
    why="that fusing everything must save before it is advised",
)
FORMULA_TRAFFIC = policy(
    "FORMULA_TRAFFIC",
    6.0,
    unit="× the bytes that enter and leave a chain",
    why="that its kernels move before it is a formula written op by op; layers as frameworks have them move less (15 healthy jobs)",
)
SURE_FUSION = policy(
    "SURE_FUSION",
    0.65,
    unit="certainty",
    why="compilers fuse most such chains, a break in the graph keeps some apart; of seven jobs with such chains it was the mistake of one: work for nothing comes first",
)
MEMORY_TO_KEEP_ACTIVATIONS = policy(
    "MEMORY_TO_KEEP_ACTIVATIONS",
    0.3,
    unit="share of the device's memory",
    why="that must be free before activations are advised to be kept",
)
DENSE_TABLE_LEAST = policy(
    "DENSE_TABLE_LEAST",
    0.2,
    unit="share of the step",
    why="sparse gradients change what an optimizer does: less is not worth it",
)
FEW_ROWS_OF_TABLE = policy(
    "FEW_ROWS_OF_TABLE",
    0.1,
    unit="share of a table's rows",
    why="a batch that touches more gains little from sparse gradients",
)
LIGHT_PASS = policy(
    "LIGHT_PASS",
    0.3,
    unit="share of the heaviest pass",
    why="a pass of an optimizer over all its parameters moves at least so much of that",
)
COPIES_ON_DEVICE_LEAST = policy(
    "COPIES_ON_DEVICE_LEAST",
    0.2,
    unit="share of the step",
    why="some copies are part of any healthy job: up to 12 % in 15 of them",
)
LONG_KERNEL_NS = policy(
    "LONG_KERNEL_NS", 50_000, unit="ns", why="shorter kernels are launch-bound, whatever their blocks"
)
LEAST_BLOCKS_FACTOR = policy(
    "LEAST_BLOCKS_FACTOR",
    0.05,
    unit="× the kernel's time",
    why="no promise that filling the device makes a kernel more than 20 times faster",
)
SCORES_LENGTH = policy(
    "SCORES_LENGTH",
    128,
    unit="rows of a table of attention scores",
    why="fusing the attention of shorter sequences saves little",
)
BATCH_TIMES = policy("BATCH_TIMES", 8, unit="× the batch", why="that `small-batch` promises for")
SMALL_BATCH_ROWS = policy(
    "SMALL_BATCH_ROWS",
    32,
    unit="rows of a product",
    why="up to here a product waits for its weights to be read",
)
WEIGHTS_OVER_BATCH = policy(
    "WEIGHTS_OVER_BATCH",
    16,
    unit="× the rows",
    why="weights that are so much larger than the batch decide how long a product takes",
)
SMALL_PRODUCTS_WORK = policy(
    "SMALL_PRODUCTS_WORK",
    0.3,
    unit="share of the device's work",
    why="in such products, before the batch is called small",
)
SMALL_PRODUCTS_SHARE = policy(
    "SMALL_PRODUCTS_SHARE",
    0.8,
    unit="share of the products",
    why="that must be small, so that one small layer does not count",
)
UPDATE_WORK = policy(
    "UPDATE_WORK",
    0.6,
    unit="share of the device's work",
    why="in the optimizer, before the batch is called small",
)

# Copies and memory.
OFFLOADED_BYTES = policy(
    "OFFLOADED_BYTES",
    16 << 20,
    unit="bytes of a copy",
    why="from which an array may be the weights of a layer",
)
DETOUR_BYTES = policy(
    "DETOUR_BYTES", 64 << 10, unit="bytes", why="less is a figure that was read, not data that was moved"
)
MEMORY_PRESSURE = policy(
    "MEMORY_PRESSURE",
    0.9,
    unit="share of the device's memory",
    why="fragmentation and the next larger batch take the rest",
)
MEMORY_GROWTH_BYTES = policy(
    "MEMORY_GROWTH_BYTES", 1 << 20, unit="bytes per step", why="less is the allocator's rounding"
)
MEMORY_GROWTH_SHARE = policy(
    "MEMORY_GROWTH_SHARE", 0.001, unit="share of the peak per step", why="less fills no device within a run"
)
STEADY_GROWTH = policy(
    "STEADY_GROWTH",
    0.5,
    unit="least / largest growth of a step",
    why="a leak grows in every step; a level that only drifts is not growth",
)
PEAK_KNOWN = policy(
    "PEAK_KNOWN",
    0.95,
    unit="share of the peak",
    why="below, the report says how much was allocated before the recording",
)
MXU_REACHED_LEAST = policy(
    "MXU_REACHED_LEAST",
    0.4,
    unit="share of the peak",
    why="that large products of a TPU reach at least in well-tuned models; below it tiles are padded or small",
)
MXU_REACHED_MOST = policy(
    "MXU_REACHED_MOST",
    0.7,
    unit="share of the peak",
    why="that large products of a TPU reach in the best of models",
)
