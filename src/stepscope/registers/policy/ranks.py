"""Comparing ranks."""

from __future__ import annotations

from stepscope.registers.entry import policy

WORST_COLLECTIVES = policy(
    "WORST_COLLECTIVES",
    20,
    unit="collectives",
    why="with the longest waits, of which every arrival is listed",
)
EXAMINED_RANKS = policy(
    "EXAMINED_RANKS",
    8,
    unit="ranks",
    why="of more, only some are examined in full, and the others share the findings of those whose accounts are like theirs: "
    "rules and replay cost half a second of a processor for each rank, however small",
)
MOST_GROUPED_RANKS = policy(
    "MOST_GROUPED_RANKS", 256, unit="ranks", why="of unnamed groups: all pairs are compared"
)
SELDOM_IMPOSSIBLE = policy(
    "SELDOM_IMPOSSIBLE",
    0.05,
    unit="share of calls",
    why="that may look impossible by one clock before ranks are taken to have several: names or files were copied",
)
SAME_MOMENT = policy(
    "SAME_MOMENT",
    0.1,
    unit="share of the shorter wait",
    why="by which two waits may overlap and still be one after the other: clocks of ranks agree no better",
)
SAME_ARRIVAL_NS = policy(
    "SAME_ARRIVAL_NS",
    1_000,
    unit="ns",
    why="arrivals this close are at the same time, and no rank is the last: Kineto writes microseconds",
)
ALWAYS_LATE = policy(
    "ALWAYS_LATE",
    0.8,
    unit="share of steps",
    why="in which a rank is late to be called always so; chosen with benchmarks/ranks",
)
MOST_OF_LOSS = policy(
    "MOST_OF_LOSS",
    0.5,
    unit="share of what is lost",
    why="that a rank must cost to be named where there are too few steps for a test",
)
MORE_WORK = policy(
    "MORE_WORK", 1.1, unit="× the blocks of the others", why="below, padding and rounding make as much"
)
SELDOM_INTERRUPTED = policy(
    "SELDOM_INTERRUPTED",
    0.1,
    unit="share of an op's calls",
    why="the shortest ones: on a core shared with another program the typical call of a millisecond is interrupted, these are not",
)
GREW_WITH = policy(
    "GREW_WITH", 0.5, unit="growth in blocks / growth in time", why="from here on more work explains the time"
)
ALIKE_GROWTH = policy(
    "ALIKE_GROWTH",
    0.25,
    unit="× the typical growth",
    why="a larger batch is larger in each step by as much; what varies more is uneven data",
)
SLOWER_CLOCK = policy(
    "SLOWER_CLOCK",
    0.95,
    unit="× the others' GPU clock",
    why="below, the clock is the cause; clocks of healthy GPUs differ by a few per cent",
)
