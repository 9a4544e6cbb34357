"""The result of `stepscope diff`: two runs, their figures per step, and which differences are significant.

Its JSON form is a contract. Times are ns per step and rank, sizes bytes, shares 0 to 1; unknown values are null.
`difference` is always b − a: positive is more in B.
"""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = "stepscope.diff/1"


class Run(msgspec.Struct, kw_only=True):
    """One of the two runs. `paths`: all its recordings, where it has several; the other fields describe the first."""

    path: str
    paths: list[str] = []
    name: str = ""
    framework: str | None = None
    devices: list[str] = []
    hosts: list[str] = []
    ranks: int = 1
    world_size: int | None = None
    steps: int = 0  # compared steps, summed over ranks
    step_source: str = "none"
    versions: dict[str, Any] = {}


class Row(msgspec.Struct, kw_only=True):
    """One figure of both runs.

    `noise`: the 95 % margin of the difference; null where there is only one sample.
    `growth_noise`: of the step and its parts, where a side has several recordings: growth by noise is larger in 5 % of runs, by what
    those recordings differ by. `at_equal_speed`: the difference had host and device been equally fast in both runs; this is what is judged.
    """

    name: str
    a: float | None
    b: float | None
    difference: float
    relative: float | None = None  # difference / a
    at_equal_speed: float | None = None
    noise: float | None = None
    growth_noise: float | None = None
    significant: bool = False
    unit: str = "ns"
    part: str | None = None
    scope: str | None = None
    shapes: str | None = None
    op: str | None = None
    matched_by: str = ""  # name, scope and shapes …; a or b where only that run has it
    a_calls: float | None = None
    b_calls: float | None = None
    note: str = ""


class Rows(msgspec.Struct, kw_only=True):
    """Rows of one kind, the largest difference first; `total` exist, `significant` of them differ significantly."""

    total: int = 0
    significant: int = 0
    rows: list[Row] = []


class Line(msgspec.Struct, kw_only=True):
    """One reason for the change, in words.

    `share` is of the change of the step; null where that change is not significant, and where concurrent calls sum to more than it.
    `ranks`: the ranks that changed, where not all did; the difference is then the mean over these.
    """

    title: str
    kind: str  # batch, precision, op, kernel, collective, memory, calls, tail, or the part of the account
    difference: float
    unit: str = "ns"
    noise: float | None = None
    relative: float | None = None
    share: float | None = None
    detail: str = ""
    name: str | None = None
    ranks: list[int] = []


class Speed(msgspec.Struct, kw_only=True):
    """How much longer host or device took in B for the same call, by the `kinds` of calls that both runs have."""

    what: str  # host or device
    ratio: float
    kinds: int


class Batch(msgspec.Struct, kw_only=True):
    """B's batch is `ratio` times A's: shape dimensions differ by that factor, in `share` of the ops that differ."""

    ratio: float
    share: float
    example: str = ""


class Tail(msgspec.Struct, kw_only=True):
    """Occasional slow steps: how many of how many, what they add to the mean step, and what causes them.

    `times`: their duration relative to the usual step, in the run that has more of them; `part` and `name` took most of the excess.
    """

    a_slow: int
    b_slow: int
    a_steps: int
    b_steps: int
    a_excess_ns: float
    b_excess_ns: float
    times: float
    part: str | None = None
    name: str | None = None
    significant: bool = False


class FindingChange(msgspec.Struct, kw_only=True):
    """A finding, and what it would save per step in each run that has it. If both have it, `significant` means that it is worth far more in one."""

    code: str
    title: str
    a_saves_ns: int | None = None
    b_saves_ns: int | None = None
    significant: bool = False


class FlameNode(msgspec.Struct, array_like=True):
    """A node of the differential flame graph: times per step in both runs, parents before their children."""

    parent: int
    name: int
    a_self_ns: float
    b_self_ns: float
    a_total_ns: float
    b_total_ns: float


class Flame(msgspec.Struct, kw_only=True):
    """Ops below their scopes. `name` is an index into `names`; the smallest nodes are left out and counted."""

    measure: str = "device"
    names: list[str] = []
    nodes: list[FlameNode] = []
    left_out: int = 0


class Diff(msgspec.Struct, kw_only=True):
    """All of it."""

    schema: str = SCHEMA
    a: Run
    b: Run
    verdict: str
    significant: bool
    step: Row  # the mean; parts sum to it
    lines: list[Line] = []
    explained_share: float | None = None  # of the step's change, by the lines
    not_comparable: list[str] = []
    one_recording: bool = False  # B is A's recording, or a modified copy of it: every difference is real
    speed: list[Speed] = []
    batch: Batch | None = None
    tail: Tail | None = None  # where a run has occasional slow steps
    figures: list[Row] = []
    parts: list[Row] = []
    names: Rows = msgspec.field(default_factory=Rows)  # what the parts went to, except the device's own work
    ops: Rows = msgspec.field(default_factory=Rows)
    ops_measure: str = "device"
    kernels: Rows = msgspec.field(default_factory=Rows)
    precision: list[Row] = []
    collectives: Rows = msgspec.field(default_factory=Rows)
    memory: list[Row] = []
    gained: list[FindingChange] = []
    lost: list[FindingChange] = []
    kept: list[FindingChange] = []
    steps: dict[str, list[int]] = {}
    flame: Flame = msgspec.field(default_factory=Flame)


def json_schema() -> dict[str, Any]:
    """The JSON schema of a diff."""
    return msgspec.json.schema(Diff)
