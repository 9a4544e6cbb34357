"""What compute needs at best and where the rest of it is lost, as the report has it. Its rules and units are those of `model`."""

from __future__ import annotations

import msgspec


class PeakRow(msgspec.Struct, kw_only=True):
    """What a device can do at best."""

    device: str
    source: str  # data sheet, profile, or measured (stepscope calibrate)
    flops_per_s: dict[str, float] = {}  # by number format
    bytes_per_s: float
    l2_bytes: float | None = None
    l2_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None  # one way
    link: str | None = None
    link_bytes_per_s: float | None = None  # both ways, all links


class RooflineRow(msgspec.Struct, kw_only=True):
    """The kernels of one class, or of one op in it; FLOPs, bytes and rates are of those whose work is known."""

    class_: str = msgspec.field(name="class")
    op: str | None = None  # null: all of the class
    kernels: int
    flops: float | None = None
    bytes: float | None = None
    ideal_ns: int | None = None
    time_ns: int
    share: float  # of compute
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    share_of_bound: float | None = None  # ideal time / time
    bound: str | None = None  # what bounds most of its time: flops, hbm or l2


class ComputePart(msgspec.Struct, kw_only=True):
    """Ideal time, or time lost for one reason; they sum to compute."""

    reason: str
    ns: int
    share: float
    ns_by_class: dict[str, int] = {}


class Roofline(msgspec.Struct, kw_only=True):
    """The account of compute. `known_share` is the share of compute whose work and bound are known.

    `hfu`: FLOPs of matrix products / what the best dense peak does in the time of the steps; `mfu`: without what is recomputed.
    Null where too little is known, or where more than 100 % comes out: then the peak is not that of this device.
    """

    peaks: list[PeakRow] = []
    rows: list[RooflineRow] = []
    total: int = 0  # rows before they were capped
    parts: list[ComputePart] = []
    known_share: float | None = None
    mfu: float | None = None
    hfu: float | None = None
