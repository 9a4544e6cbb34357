"""Inference, as the report has it. Its rules and units are those of `model`."""

from __future__ import annotations

import msgspec


class ServingPhase(msgspec.Struct, kw_only=True):
    """The executions of one phase: prefill, decode, extend, mixed or other."""

    phase: str
    executions: int
    batch_size: float | None = None  # requests, the median
    tokens: int | None = None  # computed, as the names of the executions say
    total_ns: int
    mean_ns: int
    tokens_per_s: float | None = None


class ServingGaps(msgspec.Struct, kw_only=True):
    """Host time between the end of an execution and the start of the next: the scheduler's."""

    count: int = 0
    total_ns: int = 0
    median_ns: int | None = None
    share: float | None = None  # of the time from the first execution to the last


class Serving(msgspec.Struct, kw_only=True):
    """What kind of job this is, and of inference the phases of its executions."""

    workload: str | None = None  # inference or training; null where nothing decides
    engine: str | None = None
    evidence: str = ""
    phases: list[ServingPhase] = []
    gaps: ServingGaps = msgspec.field(default_factory=ServingGaps)
