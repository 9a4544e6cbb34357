"""Communication and ranks against each other, as the report has them. Its rules and units are those of `model`."""

from __future__ import annotations

from typing import Any

import msgspec


class CollectiveRow(msgspec.Struct, kw_only=True):
    """One collective operation of one group."""

    name: str
    group: str | None = None
    group_size: int | None = None
    dtype: str | None = None
    calls: int
    bytes: int | None = None
    total_ns: int
    exposed_ns: int | None = None
    overlapped_ns: int | None = None
    algorithm_gb_per_s: float | None = None
    bus_gb_per_s: float | None = None
    # Of calls that were matched over ranks; the waits for late ranks are taken out of the bandwidths.
    wait_ns: int | None = None
    transfer_ns: int | None = None
    transfer_gb_per_s: float | None = None
    transfer_bus_gb_per_s: float | None = None
    # Arrivals of ranks that waited less than 1 µs, from 1 to 2, from 2 to 4 and so on.
    wait_histogram: list[int] | None = None


class Arrival(msgspec.Struct, kw_only=True):
    """One rank's part in a collective: how long after the first it came, and how long it stayed."""

    rank: int
    after_ns: int
    dur_ns: int


class Meeting(msgspec.Struct, kw_only=True):
    """One collective over all ranks that took part in it."""

    name: str
    group: str | None = None
    group_size: int | None = None
    step: int | None = None
    sequence: int | None = None  # null where calls are matched by their order
    ranks: int
    bytes: int | None = None
    first_rank: int
    last_rank: int
    late_ns: int  # the last after the second last
    skew_ns: int  # the last after the first
    wait_ns: int  # mean over ranks
    transfer_ns: int
    exposed_share: float | None = None
    algorithm_gb_per_s: float | None = None  # of the transfer
    bus_gb_per_s: float | None = None
    # Ranks that came less than 1 µs after the first, from 1 to 2, from 2 to 4 and so on.
    spread_histogram: list[int] = []
    arrivals: list[Arrival] = []


class RankClock(msgspec.Struct, kw_only=True):
    """How far a rank's clock is ahead of the first rank's, by collectives that end for all at once."""

    rank: int
    aligned: bool
    offset_ns: int
    drift_ppm: float
    residual_ns: int | None = None  # median error of the anchors after the fit
    error_ns: int | None = None  # standard error of the offset
    anchors: int = 0


class RankWait(msgspec.Struct, kw_only=True):
    """How long one rank waited for another that came last."""

    rank: int
    for_rank: int
    wait_ns: int
    calls: int


class LateStep(msgspec.Struct, kw_only=True):
    """A step in which a rank was late."""

    rank: int
    step: int
    late_ns: int


class Straggler(msgspec.Struct, kw_only=True):
    """The rank that the others wait for: how late it comes to the collectives that all ranks must enter."""

    rank: int
    late_ns: int
    late_ns_per_step: int
    share: float  # of the steps' time
    last: int  # of `matched` collectives it was the last to come
    matched: int
    steps_late: int  # of `steps` it was the one that held the others up most
    steps: int
    always: bool
    names: list[str] = []
    kind: str = ""  # always, sometimes, data-dependent, or unclear: too few steps to tell
    cause: str | None = (
        None  # a part of the account; instead of compute: work (more of it) or clock (a slower GPU)
    )
    ranks: list[int] = []  # all that are late like it
    parts: dict[str, int] = {}  # what each part takes longer than on other ranks, per late step
    in_step_before: bool = False  # … in the step before each late one: after the last collective there
    late_in: list[int] = []  # the late steps
    work_ratio: float | None = (
        None  # blocks of all its kernels (on hosts: FLOPs of its ops) / those of the other ranks
    )
    blocks_per_launch_ratio: float | None = None  # of each launch of the kernels that others have, too
    launches_ratio: float | None = None  # kernels that it launches / those of the other ranks
    since: int | None = None  # the step from which on it is late, where it was not before


class Collectives(msgspec.Struct, kw_only=True):
    """Communication: per operation, per rank, and rank against rank."""

    rows: list[CollectiveRow] = []
    exposed_share: float | None = None
    kernel_share: float | None = None  # of device kernel time
    ranks: list[dict[str, Any]] = []
    straggler: Straggler | None = None
    matched: int = 0  # collectives that were found on several ranks
    clocks: list[RankClock] = []
    waits: list[RankWait] = []  # the longest first
    late: list[LateStep] = []  # the latest first
    worst: list[Meeting] = []  # those in which ranks waited longest
