"""Naming the work of CUDA graphs."""

from __future__ import annotations

from stepscope.registers.entry import policy

GRAPH_ALIKE = policy(
    "GRAPH_ALIKE",
    0.9,
    unit="share of a replay's kernels",
    why="that must be those of a capture, in order, for the capture to name them; a fusion or an autotuned kernel may differ",
)
GRAPH_LONGEST = policy(
    "GRAPH_LONGEST",
    5_000,
    unit="nodes",
    why="of graphs that are aligned name by name; the time for it grows with the square",
)
