"""Ops, kernels and what ran on the devices, as the report has them. Its rules and units are those of `model`."""

from __future__ import annotations

from typing import Any

import msgspec


class OpRow(msgspec.Struct, kw_only=True):
    """One op, summed over its calls in the steps."""

    name: str
    scope: str | None = None
    placement: str | None = None
    execution: str | None = None  # eager, graph, or graph replay: the launch of a captured graph
    calls: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int
    device_self_ns: int
    memory_bytes: int | None = None
    # Of a custom op (`stepscope.op`): what its calls changed, as two figures, because an allocator keeps what it frees.
    allocator_delta_bytes: int | None = None
    device_delta_bytes: int | None = None
    flops: int | None = None
    bytes: int | None = None
    shapes: str | None = None
    share: float | None = None  # of device time, or of host time where there is no device
    forward: str | None = None  # of a backward op: the op whose gradient it computes
    stack: str | None = None  # where ops are split by it: Python frames around the calls, the innermost first


class KernelRow(msgspec.Struct, kw_only=True):
    """One kernel with one launch shape, summed over its calls in the steps."""

    name: str
    op: str | None = None
    calls: int
    total_ns: int
    mean_ns: int
    min_ns: int
    max_ns: int
    grid: list[int] | None = None
    block: list[int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    blocks_per_sm: float | None = None
    waves_per_sm: float | None = None
    precision: str = "unknown"
    tensor_cores: bool | None = None
    eligible: bool | None = None
    share: float | None = None  # of the time of all kernels


class Rows(msgspec.Struct, kw_only=True):
    """A capped list: `total` rows exist, `shown` of them are here."""

    total: int = 0
    shown: int = 0


class GraphKernel(msgspec.Struct, kw_only=True):
    """A kernel or copy inside a graph, over all launches of it."""

    name: str
    calls: int
    ns: int


class GraphRow(msgspec.Struct, kw_only=True):
    """A captured graph, over its launches in the steps. It is a row of the ops, too (execution: graph replay)."""

    name: str
    scope: str | None = None  # the annotation around its launch
    calls: int
    nodes: int  # of one launch
    host_ns: int
    device_ns: int
    named_share: (
        float  # of its device time whose op is known, by a recording of the capture or by the program
    )
    kernels: list[GraphKernel] = []  # the longest


class Ops(Rows, kw_only=True):
    """Ops by device time, then host self time; `by` is what splits them beside their names."""

    by: list[str] = []
    rows: list[OpRow] = []
    graphs: list[GraphRow] = []  # replays of captured graphs, the longest first


class Kernels(Rows, kw_only=True):
    """Kernels by total time."""

    rows: list[KernelRow] = []


class UnknownKernel(msgspec.Struct, kw_only=True):
    """A kernel whose number format neither its name, its op nor the rest of the file reveals."""

    name: str
    op: str | None = None
    calls: int
    ns: int
    share: float  # of device compute time


class Precision(msgspec.Struct, kw_only=True):
    """Shares of device compute time."""

    shares: dict[str, float] = {}  # fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, unknown
    tensor_core_share: float | None = None
    eligible_share: float | None = None
    unknown_share: float = 0.0
    unknown_total: int = 0  # kernels of unknown format
    unknown: list[UnknownKernel] = []  # the longest first


class CopyRow(msgspec.Struct, kw_only=True):
    """Copies of one direction and one pair of memories."""

    direction: str | None = None
    source: str | None = None
    target: str | None = None
    calls: int
    bytes: int | None = None
    total_ns: int
    exposed_ns: int | None = None
    gb_per_s: float | None = None


class Queue(msgspec.Struct, kw_only=True):
    """The device's launch queue: how long work waits between its launch and its start."""

    launches: int = 0
    median_delay_ns: int | None = None
    p90_delay_ns: int | None = None
    median_depth: float | None = None
    max_depth: int | None = None
    empty_share: float | None = None  # of launches that met an idle device


class Device(msgspec.Struct, kw_only=True):
    """How the devices were used during the steps."""

    busy_share: float | None = None
    mfu: float | None = None  # against the best dense peak: of 16 bits, or of a narrower format that was used
    mfu_own_precision: float | None = None  # against the peak of the number format that was used
    sm_efficiency: float | None = None
    occupancy: float | None = None
    streams: int = 0
    concurrency: float | None = None  # mean number of kernels while any runs
    copies: list[CopyRow] = []
    queue: Queue = msgspec.field(default_factory=Queue)
    timeline: list[dict[str, Any]] = []  # {device, start_ns, end_ns, busy}
