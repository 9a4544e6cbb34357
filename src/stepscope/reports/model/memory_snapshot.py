"""A memory snapshot in the report."""

from __future__ import annotations

import msgspec

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.change import Change


class HeldRow(msgspec.Struct, kw_only=True):
    """What one line holds for one purpose. `inner` is the place further in, where that is known."""

    kind: str  # parameter, gradient, optimizer state, activation, input, temporary or unknown
    bytes: int
    blocks: int
    where: Place | None = None
    inner: Place | None = None


class KindRow(msgspec.Struct, kw_only=True):
    """What is held for one purpose; `cached` is free memory that the allocator has not given back."""

    kind: str
    bytes: int
    blocks: int


class CulpritRow(msgspec.Struct, kw_only=True):
    """Who holds the memory, in the order in which to look. `cause`: kept, growing, fragmentation, or a kind."""

    cause: str
    bytes: int
    text: str
    where: list[Place] = []


class KeptRow(msgspec.Struct, kw_only=True):
    """A line that keeps memory from pass to pass."""

    where: Place
    kind: str
    bytes: int
    passes: int
    bytes_per_pass: int


class PinRow(msgspec.Struct, kw_only=True):
    """A line whose blocks stay in segments that are otherwise free: `holds` is what is free there."""

    where: Place | None = None
    bytes: int
    segments: int
    holds: int


class SnapshotPeak(msgspec.Struct, kw_only=True):
    """The highest total of the history, `before_ns` before the snapshot was taken, and who held it, the largest first."""

    bytes: int
    before_ns: int
    kinds: list[KindRow] = []
    lines: list[HeldRow] = []


class MemorySnapshot(msgspec.Struct, kw_only=True):
    """One device: what was live when a request failed, or when the snapshot was taken.

    `peak`: where the history shows that more was live earlier.
    """

    device: int
    rank: int | None = None
    failed: bool
    asked_bytes: int | None = None
    failed_at: Place | None = None
    allocated_bytes: int
    reserved_bytes: int
    cached_bytes: int
    largest_free_bytes: int
    segments: int
    pinned_segments: int
    pinned_free_bytes: int
    known_share: float  # of what is live, with a line
    kinds: list[KindRow] = []
    lines: list[HeldRow] = []
    lines_total: int = 0  # rows of `lines` before it was capped
    culprits: list[CulpritRow] = []
    kept: list[KeptRow] = []
    pins: list[PinRow] = []
    changes: list[Change] = []
    peak: SnapshotPeak | None = None
