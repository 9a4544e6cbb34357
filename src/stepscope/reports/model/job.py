"""The whole job in the report: its parallelism, and what the replay of all ranks says."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.analysis.findings.finding import Interval


class Role(msgspec.Struct, kw_only=True):
    """Ranks that do the same work, and can be compared."""

    stage: int
    ranks: list[int] = []


class PipelineBubble(msgspec.Struct, kw_only=True):
    """Of the mean step, what the mean rank has nothing to do: in all, by the schedule alone, and by what is uneven."""

    share: float
    by_schedule: float
    by_imbalance: float
    micro_batches: int | None = None


class JobCause(msgspec.Struct, kw_only=True):
    """What makes the job slow; the speed-up is of the whole job without it. `since` is the step it began in."""

    kind: str  # rank, link, stages, experts, batches, jitter
    ranks: list[int] = []
    saves_ns_per_step: int = 0
    speedup: Interval = Interval()
    since: int | None = None
    facts: dict[str, Any] = {}


class Job(msgspec.Struct, kw_only=True):
    """`sizes`: ranks in a group of each kind of parallelism. `replayed_ns` is the mean step of the unchanged replay.

    `transfers_ns`: what its step would be shorter by if nothing waited for transfers, once the causes are gone.
    """

    sizes: dict[str, int] = {}
    roles: list[Role] = []
    recorded_ns: int | None = None
    replayed_ns: int | None = None
    is_replayed: bool = False  # whether both agree, so that causes can be found
    bubble: PipelineBubble | None = None
    transfers_ns: int | None = None
    causes: list[JobCause] = []
