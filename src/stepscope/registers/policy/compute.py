"""What the account of compute calls small, and what it takes for cached."""

from __future__ import annotations

from stepscope.registers.entry import policy

SMALL_KERNEL_NS = policy(
    "SMALL_KERNEL_NS",
    5_000,
    unit="ns",
    why="a shorter kernel spends most of its time on starting and ending; a larger one, or a fused one, does not",
)
FEW_BLOCKS = policy(
    "FEW_BLOCKS",
    0.5,
    unit="blocks per multiprocessor",
    why="with fewer, half of the device has nothing to do, whatever the kernel",
)
CACHED_SHARE = policy(
    "CACHED_SHARE",
    0.5,
    unit="share of the L2",
    why="what an op touches may still be there from the op before, if it leaves room for that op's own",
)
SLOW_OP_LEAST = policy(
    "SLOW_OP_LEAST", 0.2, unit="share of the step", why="less is hardly worth another algorithm"
)
AT_ITS_BOUND = policy(
    "AT_ITS_BOUND",
    0.5,
    unit="share of an op's time that its bytes need",
    why="above that only fewer bytes help",
)
ALSO_IN_SINGLE = policy(
    "ALSO_IN_SINGLE",
    0.1,
    unit="share of the time in float64",
    why="that kernels with fewer bits take: from there on float64 is an exception, below it the program may be meant to compute so",
)
FEWEST_PIECES = policy(
    "FEWEST_PIECES",
    2,
    unit="pieces of work that become one launch",
    why="the least that launching less can mean, as two passes with batch one become one with batch two",
)
BATCHED_PASSES_MOST = policy(
    "BATCHED_PASSES_MOST",
    2,
    unit="ops for each op of a pass",
    why="a model takes a batch as it takes one input; to stack inputs and take results apart comes with it",
)
LARGEST_NUMBER_BYTES = policy(
    "LARGEST_NUMBER_BYTES",
    8,
    unit="bytes",
    why="that a step reads at its end: more is an array, and in inference the result that was asked for",
)
FORMULAS_ALONE = policy(
    "FORMULAS_ALONE",
    0.85,
    unit="share of the time of all chains",
    why="from which on formulas are replaced one by one, without a compiler that would fuse the layers around them",
)
