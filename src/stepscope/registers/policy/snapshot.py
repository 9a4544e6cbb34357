"""Memory snapshots and out-of-memory errors."""

from __future__ import annotations

from stepscope.registers.entry import policy

NAMED_LINES = policy(
    "NAMED_LINES",
    3,
    unit="lines",
    why="that an out-of-memory finding names: more is for the table",
)
USUAL_LIFE = policy(
    "USUAL_LIFE",
    0.9,
    unit="quantile",
    why="of the lives of released allocations: one in ten may be an exception, such as an evaluation",
)
MOSTLY = policy(
    "MOSTLY",
    0.5,
    unit="share of a stack's allocations",
    why="that must have ended in one way for the stack to be judged by it",
)
FEWEST_PASSES = policy(
    "FEWEST_PASSES",
    3,
    unit="passes over a line",
    why="whose memory is still there before a line is said to keep it; two may be a double buffer",
)
KEPT_BEYOND = policy(
    "KEPT_BEYOND",
    2,
    unit="times the usual life",
    why="as many passes must be live as nine of ten released allocations of the line lived: a queue or a cache of fixed length does not grow",
)
LOOP_ENDED = policy(
    "LOOP_ENDED",
    2,
    unit="times the longest time between two passes over a line",
    why="after which its loop is taken to be over: a data set that was loaded once stays, but does not grow",
)
ONE_LINE = policy(
    "ONE_LINE",
    0.9,
    unit="share of what is kept",
    why="that one line further in must have allocated to be named before the line that calls the model",
)
SAME_COURSE = policy(
    "SAME_COURSE",
    0.1,
    unit="share of what is kept",
    why="by which the growth of two lines may differ at any time, besides one pass, to be parts of one graph or list",
)
TRIED_LINES = policy(
    "TRIED_LINES",
    40,
    unit="lines",
    why="the largest, that are looked at for memory that is kept: the time of a huge snapshot stays bounded",
)
SITE_SHARE = policy(
    "SITE_SHARE",
    0.02,
    unit="share of what is live",
    why="below it a line decides nothing",
)
KEPT_FIRST = policy(
    "KEPT_FIRST",
    0.1,
    unit="share of what is reserved",
    why="from which on memory that is kept from pass to pass is named before all else: it only grows, so no other change helps for long",
)
GOES_ON = policy(
    "GOES_ON",
    0.2,
    unit="share of what is kept",
    why="that would be left if the free pieces were joined for the request: the loop could go on for so much longer, so fragmentation comes first",
)
ASKED_ALONE = policy(
    "ASKED_ALONE",
    2,
    unit="times what is reserved",
    why="from which on the request that failed is the cause itself: all that is there together is far smaller",
)
UNWOUND = policy(
    "UNWOUND",
    0.1,
    unit="share of what was in use",
    why="released between the failure and the snapshot, from which on the state at the end says nothing about the failure",
)
STATE_OF_ADAM = policy(
    "STATE_OF_ADAM",
    2,
    unit="times the gradients",
    why="what the state of the usual optimizer takes once it is complete: a request for it that fails is judged by that",
)
BESIDE_STATE = policy(
    "BESIDE_STATE",
    0.5,
    unit="share of the optimizer's state",
    why="from which on a model that nothing trains is named first: a model needs its state, and the other one could be elsewhere",
)
WITHOUT_LINE = policy(
    "WITHOUT_LINE",
    0.5,
    unit="share of its bytes",
    why="with which memory of which no line is known is ranked: there is nothing to look at",
)
STRANDED = policy(
    "STRANDED",
    0.1,
    unit="share of what is reserved",
    why="that must be free in pieces too small for the request before fragmentation is blamed",
)
RECOMPUTED = policy(
    "RECOMPUTED",
    0.6,
    unit="share of a model's activations",
    why="expected to go with gradient checkpointing of each block: the inputs of blocks stay, and one block at a time is computed again",
)
EIGHT_BIT = policy(
    "EIGHT_BIT",
    0.75,
    unit="share of the optimizer's state",
    why="saved by 8-bit state instead of 32-bit; scales take about 1 % more",
)
SHARDED_OVER = policy(
    "SHARDED_OVER",
    8,
    unit="ranks",
    why="of the usual node, over which sharding of the optimizer's state is promised",
)
FRAGMENTED = policy(
    "FRAGMENTED",
    0.25,
    unit="share of what is reserved",
    why="free in segments that hold something else, from which on fragmentation is worth a finding where nothing failed",
)
SHORT_LIFE = policy(
    "SHORT_LIFE",
    24,
    unit="allocations and releases",
    why="a tensor that is usually released after so few is temporary; one that lives longer is held by something",
)
GROWN = policy(
    "GROWN",
    2,
    unit="times",
    why="the last quarter of a line's allocations must be larger than the first quarter for it to grow",
)
FEWEST_GROWING = policy(
    "FEWEST_GROWING",
    6,
    unit="passes over a line",
    why="before a trend of their sizes is believed",
)
GRANULE = policy(
    "GRANULE",
    2 << 20,
    unit="bytes",
    why="PyTorch's allocator takes memory from the driver in multiples of it; a segment that was given back is drawn no finer",
)
