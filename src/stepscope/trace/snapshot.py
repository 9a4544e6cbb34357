"""Whether a trace is the snapshot of an allocator: a history of requests and the state at its end, without work that takes time."""

from __future__ import annotations

from stepscope.trace.trace import Trace

ROUNDED_TO = 512  # bytes of every block of the CUDA caching allocator
# The annotation of a time in which no stacks were recorded, as stepscope's capture writes it.
WITHOUT_STACKS = "stepscope: no stacks recorded"


def is_snapshot(trace: Trace) -> bool:
    """By its tables: only snapshots say what each row of `memory` did."""
    return len(trace.blocks) > 0 or trace.memory["action"].count() > 0
