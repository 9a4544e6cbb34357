"""The report: everything that a renderer, the page or a check may show. Its JSON form is a contract.

Times are ns, sizes bytes, shares 0 to 1. What is not known is null, never 0. Long lists are capped, and say so.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.host.place import Place
from stepscope.reports.model.critical_path import CriticalPath, PathRow
from stepscope.reports.model.hang import Hang, HangCall, HangGroup
from stepscope.reports.model.job import Job
from stepscope.reports.model.memory_snapshot import MemorySnapshot
from stepscope.reports.model.ranks import (
    Arrival,
    CollectiveRow,
    Collectives,
    LateStep,
    Meeting,
    RankClock,
    RankWait,
    Straggler,
)
from stepscope.reports.model.roofline import ComputePart, PeakRow, Roofline, RooflineRow
from stepscope.reports.model.serving import Serving, ServingGaps, ServingPhase
from stepscope.reports.model.work import (
    CopyRow,
    Device,
    GraphKernel,
    GraphRow,
    KernelRow,
    Kernels,
    OpRow,
    Ops,
    Precision,
    Queue,
    Rows,
    UnknownKernel,
)

__all__ = [
    "SCHEMA",
    "Arrival",
    "BreakdownRow",
    "CollectiveRow",
    "Collectives",
    "ComputePart",
    "CopyRow",
    "Coverage",
    "CriticalPath",
    "Device",
    "Finding",
    "Gap",
    "GraphKernel",
    "GraphRow",
    "Hang",
    "HangCall",
    "HangGroup",
    "Input",
    "InputStage",
    "Interval",
    "KernelRow",
    "Kernels",
    "LateStep",
    "LiveRow",
    "Meeting",
    "Memory",
    "MemoryDevice",
    "NamedTime",
    "OpRow",
    "Ops",
    "PathRow",
    "PeakRow",
    "PhaseRow",
    "Place",
    "Precision",
    "Problem",
    "Profile",
    "Queue",
    "RankClock",
    "RankWait",
    "RegionRow",
    "Report",
    "Roofline",
    "RooflineRow",
    "Rows",
    "Serving",
    "ServingGaps",
    "ServingPhase",
    "StepRow",
    "Steps",
    "Straggler",
    "UnknownKernel",
    "Unprofiled",
]

SCHEMA = "stepscope.report/2"


class Profile(msgspec.Struct, kw_only=True):
    """What was profiled."""

    path: str
    name: str = ""
    framework: str | None = None
    format: str = ""
    ranks: list[int] = []
    examined: list[int] = []  # of many ranks those whose findings and ops are shown; empty if all are
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
    """A defect of the capture itself. `detail` is the evidence; title, cause and fix are the catalogue's."""

    code: str
    severity: str
    title: str
    detail: str
    cause: str = ""
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


class Unprofiled(msgspec.Struct, kw_only=True):
    """A step without the profiler: the mean of `count` steps between two waits for the device, and its spread.

    `host_ns` is the host's own time per step, while nothing held it up.
    """

    mean_ns: int
    low_ns: int | None = None
    high_ns: int | None = None
    count: int = 0
    host_ns: int | None = None


class StepSample(msgspec.Struct, kw_only=True):
    """The consecutive steps that findings are made of, `count` of all `of`; their account is like that of all steps."""

    first: int
    last: int
    count: int
    of: int


class Steps(msgspec.Struct, kw_only=True):
    """All steps; the figures leave partial ones out and are over each rank's critical device.

    `inflation`: how much longer a profiled step is than an unprofiled one, where that is known.
    `source`: marker, annotation, program, inferred, or whole: no steps, but one window over the recording.
    `covers`: the share of the recorded device time that is in the steps, and in every table. With regions, the steps
    are the passes through `region`; `regions` are all that were recorded, and each is a population of its own.
    """

    source: str = "none"
    name: str | None = None
    confidence: str | None = None  # high, medium or low: that these are the steps
    covers: float | None = None
    warm_up: str | None = None  # the annotation whose passes were left out, `warm_ups` of them
    warm_ups: int = 0
    region: str | None = None
    regions: list[str] = []
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
    # What shares are measured by, and savings and speed-ups: the unprofiled step where it is known, else the recorded one.
    basis: str = "recorded"
    basis_ns: int | None = None
    estimated_ns: int | None = (
        None  # the unprofiled step as findings have it, where it was not timed: savings are a part of that
    )
    unprofiled: Unprofiled | None = None
    sentence: str = ""  # the basis in words: a part of the sentence that opens every rendering
    partial: int = 0
    sample: StepSample | None = None  # of a long recording: what findings are made of
    outliers: int = 0
    critical_devices: dict[str, int | None] = {}  # by rank
    rows: list[StepRow] = []


class NamedTime(msgspec.Struct, kw_only=True):
    """Time charged to an event by its name, and the thread or stream it was on.

    `detail` says more, for most of the time: where a wait was asked for, what was slow inside the input.
    `place`: before, where the event did not spend the time but came next; end, where nothing more of the step was
    recorded, and the name is that of its marker; during, where the device was late while the host was in that call.
    """

    name: str
    thread: str | None = None
    ns: int
    detail: str | None = None
    place: str | None = None


class BreakdownRow(msgspec.Struct, kw_only=True):
    """One part of the account, over all steps of the critical device of each rank.

    `names` has the longest; `names_total` exist, and `named_share` of the part's time has a name.
    `end_ns` of the unexplained time is the end of steps, after all that was recorded of them.
    """

    part: str
    ns: int
    share: float
    names: list[NamedTime] = []
    names_total: int = 0
    named_share: float = 0.0
    end_ns: int = 0


class PhaseRow(msgspec.Struct, kw_only=True):
    """An outermost annotation in the steps, such as `collect` or `train`; `parts` is the account of its time and the work that it launched."""

    name: str
    calls: int
    total_ns: int
    share: float  # of the time of the steps on the host
    parts: dict[str, int] = {}


class RegionRow(msgspec.Struct, kw_only=True):
    """A region that the capture recorded on its own: its passes are its steps. `share` is of the time of all regions."""

    name: str
    count: int
    total_ns: int
    share: float = 0.0
    median_ns: int | None = None
    mean_ns: int | None = None
    p90_ns: int | None = None
    parts: dict[str, int] = {}
    findings: list[Finding] = []


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
    """Memory, a row per device; `snapshot` explains a memory snapshot, a row per device too."""

    devices: list[MemoryDevice] = []
    snapshot: list[MemorySnapshot] = []


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


# Plain data: `stepscope.reports.report.Report` is the one that can be shown and saved.
class Report(msgspec.Struct, kw_only=True):
    """All of it."""

    schema: str = SCHEMA
    profile: Profile
    sentence: str = ""  # opens every rendering: the verdict, how long a step takes, what to change
    problems: list[Problem] = []
    hang: Hang = msgspec.field(default_factory=Hang)
    steps: Steps = msgspec.field(default_factory=Steps)
    breakdown: list[BreakdownRow] = []
    phases: list[PhaseRow] = []
    serving: Serving = msgspec.field(default_factory=Serving)
    regions: list[RegionRow] = []
    findings: list[Finding] = []
    # The speed-up of all findings' changes together, where a replay of one rank says it of each that promises something.
    together: Interval | None = None
    critical_path: CriticalPath = msgspec.field(default_factory=CriticalPath)
    input: Input = msgspec.field(default_factory=Input)
    ops: Ops = msgspec.field(default_factory=Ops)
    kernels: Kernels = msgspec.field(default_factory=Kernels)
    precision: Precision = msgspec.field(default_factory=Precision)
    roofline: Roofline = msgspec.field(default_factory=Roofline)
    device: Device = msgspec.field(default_factory=Device)
    memory: Memory = msgspec.field(default_factory=Memory)
    collectives: Collectives = msgspec.field(default_factory=Collectives)
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    job: Job | None = None  # of several ranks that meet
