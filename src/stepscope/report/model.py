"""The report: everything that a renderer, the page or a check may show. Its JSON form is a contract.

Times are ns, sizes bytes, shares 0 to 1. What is not known is null, never 0. Long lists are capped, and say so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from stepscope.report.figures.figure import Figure

SCHEMA = "stepscope.report/1"


class Profile(msgspec.Struct, kw_only=True):
    """What was profiled."""

    path: str
    name: str = ""
    framework: str | None = None
    format: str = ""
    ranks: list[int] = []
    world_size: int | None = None
    devices: list[dict[str, Any]] = []
    duration_ns: int = 0
    events: int = 0
    files: list[str] = []
    versions: dict[str, Any] = {}
    hosts: list[str] = []
    capture_options: dict[str, Any] = {}
    recorded_unix_ns: int | None = None


class Problem(msgspec.Struct, kw_only=True):
    """A defect of the capture itself."""

    code: str
    severity: str
    title: str
    detail: str
    fix: str = ""
    rank: int | None = None
    count: int = 1


class StepRow(msgspec.Struct, kw_only=True):
    """One step on one device of one rank; its parts sum to its duration."""

    rank: int
    device: int | None
    step: int
    start_ns: int
    duration_ns: int
    parts: dict[str, int]
    partial: bool = False
    outlier: bool = False


class Steps(msgspec.Struct, kw_only=True):
    """All steps; the figures leave partial ones out and are over each rank's critical device.

    `inflation`: how much longer a profiled step is than an unprofiled one, where that is known.
    """

    source: str = "none"
    name: str | None = None
    count: int = 0
    median_ns: int | None = None
    mean_ns: int | None = None
    p10_ns: int | None = None
    p90_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    inflation: float | None = None
    inflation_source: str | None = (
        None  # measured: by steps outside the window; estimated: by a cost per event
    )
    partial: int = 0
    outliers: int = 0
    critical_devices: dict[str, int | None] = {}  # by rank
    rows: list[StepRow] = []


class NamedTime(msgspec.Struct, kw_only=True):
    """Time charged to an event by its name, and the thread or stream it was on.

    `detail` says more, for most of the time: where a wait was asked for, what was slow inside the input.
    """

    name: str
    thread: str | None = None
    ns: int
    detail: str | None = None


class BreakdownRow(msgspec.Struct, kw_only=True):
    """One part of the account, over all steps of the critical device of each rank.

    `names` has the longest; `names_total` exist, and `named_share` of the part's time has a name.
    """

    part: str
    ns: int
    share: float
    names: list[NamedTime] = []
    names_total: int = 0
    named_share: float = 0.0


class PhaseRow(msgspec.Struct, kw_only=True):
    """An outermost annotation in the steps, such as `collect` or `train`; `parts` is the account of its time."""

    name: str
    calls: int
    total_ns: int
    share: float  # of the time of the steps on the host
    parts: dict[str, int] = {}


class Finding(msgspec.Struct, kw_only=True):
    """A diagnosed bottleneck: evidence, what to change, and what that would save."""

    code: str
    class_: str = msgspec.field(name="class")
    title: str
    detail: str
    evidence: dict[str, Any] = {}
    share: float = 0.0
    saves_ns_per_step: int = 0
    speedup: float = 1.0
    speedup_max: float = 1.0
    fix: str = ""


class InputStage(msgspec.Struct, kw_only=True):
    """One stage of the input pipeline."""

    name: str
    kind: str  # read, preprocess, batch, copy, wait or other
    total_ns: int
    self_ns: int
    calls: int


class Input(msgspec.Struct, kw_only=True):
    """The input pipeline: its share of host time in steps, the share the device waited for, and its stages."""

    share: float = 0.0
    exposed_share: float = 0.0
    stages: list[InputStage] = []
    stages_total: int = 0  # before they were capped
    verdict: str = ""


class OpRow(msgspec.Struct, kw_only=True):
    """One op, summed over its calls in the steps."""

    name: str
    scope: str | None = None
    placement: str | None = None
    execution: str | None = None  # eager or graph
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


class Ops(Rows, kw_only=True):
    """Ops by device time, then host self time; `by` is what splits them beside their names."""

    by: list[str] = []
    rows: list[OpRow] = []


class Kernels(Rows, kw_only=True):
    """Kernels by total time."""

    rows: list[KernelRow] = []


class Precision(msgspec.Struct, kw_only=True):
    """Shares of device compute time."""

    shares: dict[str, float] = {}  # fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, unknown
    tensor_core_share: float | None = None
    eligible_share: float | None = None
    unknown_share: float = 0.0


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
    mfu: float | None = None
    sm_efficiency: float | None = None
    occupancy: float | None = None
    streams: int = 0
    concurrency: float | None = None  # mean number of kernels while any runs
    copies: list[CopyRow] = []
    queue: Queue = msgspec.field(default_factory=Queue)
    timeline: list[dict[str, Any]] = []  # {device, start_ns, end_ns, busy}


class LiveRow(msgspec.Struct, kw_only=True):
    """Memory that was live at the peak."""

    kind: str  # parameter, gradient, optimizer state, activation, input, temporary or unknown
    op: str | None = None
    scope: str | None = None
    bytes: int


class MemoryDevice(msgspec.Struct, kw_only=True):
    """One device's memory (or the host's)."""

    device: int | None = None
    device_kind: str = "cpu"
    source: str = ""  # allocator, hlo or run_metadata
    peak_bytes: int | None = None
    peak_at_ns: int | None = None
    reserved_peak: int | None = None
    capacity_bytes: int | None = None
    timeline: list[dict[str, Any]] = []  # {time_ns, allocated, reserved}
    at_peak: list[LiveRow] = []
    at_peak_total: int = 0  # rows of `at_peak` before it was capped
    growth_bytes_per_step: int | None = None
    never_freed_bytes: int | None = None
    fragmentation: float | None = None
    known_share: float | None = None  # of the peak's bytes whose allocation was recorded
    note: str = ""
    rank: int | None = None


class Memory(msgspec.Struct, kw_only=True):
    """Memory, a row per device."""

    devices: list[MemoryDevice] = []


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
    work_ratio: float | None = None  # blocks of all its kernels / those of the other ranks
    blocks_per_launch_ratio: float | None = None  # of each launch of the kernels that others have, too
    launches_ratio: float | None = None  # kernels that it launches / those of the other ranks


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


class Gap(msgspec.Struct, kw_only=True):
    """Something that the profile does not cover, why, and what would close it."""

    what: str
    share: float
    reason: str
    fix: str = ""


class Coverage(msgspec.Struct, kw_only=True):
    """Shares of ops (and of step time) that carry each kind of figure."""

    runtime: float | None = None
    device_time: float | None = None
    memory: float | None = None
    shapes: float | None = None
    stacks: float | None = None
    step_time: float | None = None
    gaps: list[Gap] = []


class Report(msgspec.Struct, kw_only=True):
    """All of it."""

    schema: str = SCHEMA
    profile: Profile
    problems: list[Problem] = []
    steps: Steps = msgspec.field(default_factory=Steps)
    breakdown: list[BreakdownRow] = []
    phases: list[PhaseRow] = []
    findings: list[Finding] = []
    input: Input = msgspec.field(default_factory=Input)
    ops: Ops = msgspec.field(default_factory=Ops)
    kernels: Kernels = msgspec.field(default_factory=Kernels)
    precision: Precision = msgspec.field(default_factory=Precision)
    device: Device = msgspec.field(default_factory=Device)
    memory: Memory = msgspec.field(default_factory=Memory)
    collectives: Collectives = msgspec.field(default_factory=Collectives)
    coverage: Coverage = msgspec.field(default_factory=Coverage)

    def figure(self, name: str) -> Figure:
        """A drawing: account, steps, ranks, ops, kernels, precision, device, memory or collectives."""
        from stepscope.report.figures import figure

        return figure(self, name)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the report as what the name says: .html, .json, .md, or text."""
        from stepscope.report.write import save

        save(self, Path(path), force=force)

    def __str__(self) -> str:
        from stepscope.report.terminal import as_text

        return as_text(self)

    def __repr__(self) -> str:
        from stepscope.report.headline import brief

        return brief(self)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("profile", self.profile.name)]

    def _repr_html_(self) -> str:
        from stepscope.report.html import fragment

        return fragment(self)
