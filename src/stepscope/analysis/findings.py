"""What holds the step up, ranked by the time it would save: each finding owns its own slices of the account.

`speedup_max` is the bound from the account: all the time the finding owns, gone. `speedup` is the estimate from the
replay: the recorded steps played again with the change applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.account import Account
from stepscope.analysis.advice import advice
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.replay import Plan, plan
from stepscope.analysis.steps import Steps
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace
from stepscope.units import duration, size

CLASSES = ("capture", "memory", "time", "advice")
WORTH_TELLING = 0.03  # of the step; below this a finding is noise
DISPATCH_LEFT = 0.1  # of the host's launch work that a compiled or captured step still does


@dataclass(frozen=True)
class Finding:
    """Named as in the report."""

    code: str
    class_: str
    title: str
    detail: str
    fix: str
    evidence: dict[str, Any] = field(default_factory=dict)
    share: float = 0.0
    saves_ns_per_step: int = 0
    speedup: float = 1.0
    speedup_max: float = 1.0


@dataclass
class Case:
    """Everything that a rule may ask about one rank's critical device."""

    trace: Trace
    steps: Steps
    account: Account
    device: int | None
    memory: list[DeviceMemory]
    kernel_labels: pl.DataFrame  # event, precision, tensor_cores, eligible

    @cached_property
    def slices(self) -> pl.DataFrame:
        """The account of the device, with length and the name of whom each slice is charged to."""
        mine = self.account.slices.filter(pl.col("device").eq_missing(self.device))
        names = self.trace.events["name"].gather(mine["named_by"])
        return mine.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), name=names)

    @cached_property
    def step_count(self) -> int:
        """Steps of this device."""
        return max(1, self.slices["step"].n_unique())

    @cached_property
    def step_ns(self) -> float:
        """The mean length of a step."""
        return int(self.slices["ns"].sum()) / self.step_count

    @cached_property
    def plan(self) -> Plan:
        """The steps, ready to be played again."""
        return plan(self.trace, self.steps, self.device)

    @cached_property
    def played_ns(self) -> float:
        """A step played again without any change."""
        return self.plan.step_ns()

    def part_ns(self, *parts: str) -> int:
        """Time per step in these parts."""
        return int(int(self.slices.filter(pl.col("part").is_in(parts))["ns"].sum()) / self.step_count)

    def top_names(self, owned: pl.DataFrame, count: int = 3) -> list[dict[str, Any]]:
        """Whom the time is charged to, largest first."""
        summed = owned.group_by("name").agg(pl.col("ns").sum()).cast({"name": pl.String})
        ranked = summed.sort(["ns", "name"], descending=[True, False])
        return [
            {"name": name, "ns_per_step": int(ns / self.step_count)}
            for name, ns in ranked.head(count).iter_rows()
        ]

    def saved_by(self, changed: Plan) -> int:
        """Time per step that the change saves, as the replay tells."""
        return max(0, int(self.played_ns - changed.step_ns()))


def findings(case: Case) -> list[Finding]:
    """All findings worth telling: what threatens the run first, then by time saved."""
    if case.slices.is_empty():
        return []
    found = [finding for rule in RULES for finding in [rule(case)] if finding is not None]
    return sorted(found, key=lambda one: (CLASSES.index(one.class_), -one.saves_ns_per_step, -one.share))


def _timed(
    case: Case, code: str, owned_ns: int, saved: int, title: str, detail: str, evidence: dict[str, Any]
) -> Finding:
    saved = min(saved, int(0.98 * case.step_ns))
    # What the change also hides was never the finding's own; the bound is never below the estimate.
    bound = max(saved, min(owned_ns, int(0.98 * case.step_ns)))
    return Finding(
        code=code,
        class_="time",
        title=title,
        detail=detail,
        fix=advice(code, case.trace.info.framework),
        evidence=evidence,
        share=round(owned_ns / case.step_ns, 4),
        saves_ns_per_step=saved,
        speedup=round(case.step_ns / (case.step_ns - saved), 3),
        speedup_max=round(case.step_ns / (case.step_ns - bound), 3),
    )


def _of_part(
    case: Case, code: str, part: str, title: str, changed: Callable[[], Plan], least: float = WORTH_TELLING
) -> Finding | None:
    owned = case.slices.filter(pl.col("part") == part)
    ns = case.part_ns(part)
    if ns < least * case.step_ns:
        return None
    names = case.top_names(owned)
    detail = f"{duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%})"
    if names and names[0]["name"]:
        detail += f", mostly in {names[0]['name']}"
    return _timed(case, code, ns, case.saved_by(changed()), title, detail + ".", {"names": names})


def input_bound(case: Case) -> Finding | None:
    """The device waits for the next batch."""
    return _of_part(
        case,
        "input-bound",
        "input",
        "The device waits for data",
        lambda: case.plan.with_host(pl.col("cause") == "input", 0.0),
        0.05,
    )


def recompilation(case: Case) -> Finding | None:
    """Programs are compiled inside the steps."""
    return _of_part(
        case,
        "recompilation",
        "compile",
        "Programs are compiled during the steps",
        lambda: case.plan.with_host(pl.col("cause") == "compile", 0.0),
    )


def host_python(case: Case) -> Finding | None:
    """User code runs while the device has nothing to do."""
    return _of_part(
        case,
        "host-python",
        "python",
        "The device waits for Python code",
        lambda: case.plan.with_host(pl.col("cause") == "python", 0.0),
        0.05,
    )


def device_sync(case: Case) -> Finding | None:
    """The host waits for the device, and the queue runs dry."""
    return _of_part(
        case, "device-sync", "sync", "The host waits for the device inside the step", case.plan.without_waits
    )


def exposed_copy(case: Case) -> Finding | None:
    """Copies that nothing hides."""
    copies = case.trace.events.filter(pl.col("kind").is_in(["copy", "memset"]))["id"]
    return _of_part(
        case,
        "exposed-copy",
        "copy",
        "The device waits for copies",
        lambda: case.plan.on_own_stream(pl.col("event").is_in(copies.implode())),
    )


def exposed_collective(case: Case) -> Finding | None:
    """Communication that nothing hides."""
    ns = case.part_ns("collective", "host_collective")
    if ns < 0.05 * case.step_ns:
        return None
    names = case.top_names(case.slices.filter(pl.col("part").is_in(["collective", "host_collective"])))
    detail = f"{duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%}) is communication with no computation beside it."
    return _timed(
        case, "exposed-collective", ns, ns, "The device waits for communication", detail, {"names": names}
    )


def _optimizer_slices(case: Case) -> pl.DataFrame:
    """Dispatch inside the optimizer's step."""
    events = case.trace.events
    is_optimizer = (events["role"] == "optimizer").fill_null(False)
    inside = ancestors(events, is_optimizer).is_not_null() | is_optimizer
    dispatch = case.slices.filter(pl.col("part") == "dispatch")
    return dispatch.filter(inside.gather(dispatch["named_by"]).fill_null(False))


def optimizer_loop(case: Case) -> Finding | None:
    """The optimizer updates parameters one by one."""
    owned = _optimizer_slices(case)
    ns = int(int(owned["ns"].sum()) / case.step_count)
    if ns < 0.05 * case.step_ns:
        return None
    named = owned["named_by"].unique()
    changed = case.plan.with_host(pl.col("named_by").is_in(named.implode()), DISPATCH_LEFT)
    detail = f"{duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%}) goes into launching the optimizer's many small kernels."
    return _timed(
        case,
        "optimizer-loop",
        ns,
        case.saved_by(changed),
        "The optimizer launches many small kernels",
        detail,
        {"names": case.top_names(owned)},
    )


def launch_bound(case: Case) -> Finding | None:
    """The host cannot launch work as fast as the device does it."""
    apart = optimizer_loop(case)
    owned_by_optimizer = (
        _optimizer_slices(case)["named_by"].unique() if apart else pl.Series([], dtype=pl.UInt32)
    )
    owned = case.slices.filter(
        pl.col("part") == "dispatch", ~pl.col("named_by").is_in(owned_by_optimizer.implode())
    )
    ns = int(int(owned["ns"].sum()) / case.step_count)
    if ns < 0.10 * case.step_ns:
        return None
    kernels = case.trace.events.filter((pl.col("kind") == "kernel") & pl.col("step").is_not_null())
    per_step, typical = len(kernels) / case.step_count, kernels["dur_ns"].median()
    changed = case.plan.with_host(
        (pl.col("cause") == "dispatch") & ~pl.col("named_by").is_in(owned_by_optimizer.implode()),
        DISPATCH_LEFT,
    )
    detail = (
        f"The device idles {duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%}) while the host launches "
        f"{per_step:,.0f} kernels, half of them shorter than {duration(float(typical or 0))}."  # type: ignore[arg-type]
    )
    evidence = {
        "kernels_per_step": round(per_step),
        "median_kernel_ns": typical,
        "names": case.top_names(owned),
    }
    return _timed(
        case,
        "launch-bound",
        ns,
        case.saved_by(changed),
        "The host launches work too slowly",
        detail,
        evidence,
    )


def _kernel_finding(
    case: Case, code: str, chosen: pl.Series, factor: float, title: str, why: str, least: float = 0.05
) -> Finding | None:
    """A finding about kernels: they are `factor` of their length after the change."""
    owned = case.slices.filter(pl.col("part") == "compute", pl.col("named_by").is_in(chosen.implode()))
    ns = int(int(owned["ns"].sum()) / case.step_count)
    if ns < least * case.step_ns:
        return None
    changed = case.plan.with_device(pl.col("event").is_in(chosen.implode()), factor)
    detail = f"{duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%}) {why}"
    return _timed(
        case,
        code,
        int(ns * (1 - factor)),
        case.saved_by(changed),
        title,
        detail,
        {"names": case.top_names(owned)},
    )


def fp32_matmul(case: Case) -> Finding | None:
    """Matrix work in plain fp32 on a device that has tensor cores."""
    if not _has_tensor_cores(case.trace):
        return None
    labels = case.kernel_labels
    chosen = labels.filter((pl.col("precision") == "fp32") & ~pl.col("tensor_cores") & pl.col("eligible"))
    return _kernel_finding(
        case,
        "fp32-matmul",
        chosen["event"],
        0.25,
        "Matrix products run in fp32, without tensor cores",
        "is spent in fp32 matrix products and convolutions that tensor cores could do.",
    )


def _has_tensor_cores(trace: Trace) -> bool:
    capabilities = [
        device.get("computeMajor") or device.get("compute_cap_major") or 0 for device in trace.info.devices
    ]
    return any(isinstance(major, int) and major >= 8 for major in capabilities)


def layout_conversion(case: Case) -> Finding | None:
    """Kernels that only turn one memory layout into another."""
    names = case.trace.events["name"].unique().drop_nulls()
    turning = names.filter(
        names.cast(pl.String).str.contains(r"(?i)nchwToNhwc|nhwcToNchw|nhwcAddPadding|transpose_readWrite")
    )
    chosen = case.trace.events.filter((pl.col("kind") == "kernel") & pl.col("name").is_in(turning.implode()))[
        "id"
    ]
    return _kernel_finding(
        case,
        "layout-conversion",
        chosen,
        0.0,
        "Kernels convert between memory layouts",
        "only converts tensors from one memory layout to another.",
        WORTH_TELLING,
    )


def unfused_attention(case: Case) -> Finding | None:
    """Softmax over attention scores as separate kernels between two batched products."""
    softmax = ["aten::_softmax", "aten::_softmax_backward_data"]
    if not len(_named(case.trace, softmax)) or not len(_named(case.trace, ["aten::bmm"])):
        return None
    ops = _named(case.trace, [*softmax, "aten::bmm", "aten::masked_fill", "aten::masked_fill_"])
    chosen = case.trace.kernels.filter(pl.col("op").is_in(ops.implode()))["event"]
    return _kernel_finding(
        case,
        "unfused-attention",
        chosen,
        0.4,
        "Attention runs as separate kernels",
        "is spent in attention as separate products, masks and softmax.",
    )


def _named(trace: Trace, names: list[str]) -> pl.Series:
    """The events of these names. Names are looked at once each, not once for every event."""
    known = trace.events["name"].unique().drop_nulls()
    wanted = known.filter(known.cast(pl.String).is_in(names))
    return trace.events.filter(pl.col("name").is_in(wanted.implode()))["id"]


def memory_pressure(case: Case) -> Finding | None:
    """The peak is close to what the device has."""
    for one in case.memory:
        top = max(one.peak_bytes or 0, one.reserved_peak or 0)
        if one.capacity_bytes and top > 0.9 * one.capacity_bytes:
            detail = (
                f"{size(top)} of {size(one.capacity_bytes)} are taken at the peak on device {one.device}."
            )
            return Finding(
                "memory-pressure",
                "memory",
                "The device is almost out of memory",
                detail,
                advice("memory-pressure", case.trace.info.framework),
                {"peak_bytes": top, "capacity_bytes": one.capacity_bytes},
                round(top / one.capacity_bytes, 4),
            )
    return None


def memory_growth(case: Case) -> Finding | None:
    """Memory that grows from step to step."""
    for one in case.memory:
        growth = one.growth_bytes_per_step or 0
        if one.device_kind != "cpu" and growth > max(1 << 20, 0.001 * (one.peak_bytes or 0)):
            left = (one.capacity_bytes - (one.peak_bytes or 0)) // growth if one.capacity_bytes else None
            detail = f"Every step keeps {size(growth)} more on device {one.device}" + (
                f"; after about {left:,} more steps it is full." if left else "."
            )
            return Finding(
                "memory-growth",
                "memory",
                "Memory grows with every step",
                detail,
                advice("memory-growth", case.trace.info.framework),
                {"growth_bytes_per_step": growth, "steps_left": left},
            )
    return None


def step_outliers(case: Case) -> Finding | None:
    """Steps that take much longer than the others."""
    lengths = case.slices.group_by("step").agg(pl.col("ns").sum()).sort("step")
    if len(lengths) < 5:
        return None
    median = float(lengths["ns"].median())  # type: ignore[arg-type]
    slow = lengths.filter(pl.col("ns") > 1.5 * median)
    extra = int((slow["ns"] - int(median)).sum() / case.step_count) if len(slow) else 0
    if extra < 0.05 * case.step_ns:
        return None
    numbers = slow["step"].to_list()
    detail = f"Steps {', '.join(map(str, numbers[:5]))} take over 1.5 times the median of {duration(median)}."
    finding = _timed(
        case,
        "step-outliers",
        extra,
        extra,
        "Some steps are much slower than the others",
        detail,
        {"steps": numbers},
    )
    return Finding(**{**finding.__dict__, "class_": "advice"})


def idle_unexplained(case: Case) -> Finding | None:
    """Idle time that no event explains."""
    ns = case.part_ns("unexplained")
    if ns < 0.10 * case.step_ns:
        return None
    detail = f"The device idles {duration(ns)} of {duration(case.step_ns)} per step ({ns / case.step_ns:.0%}) and nothing was recorded on the host meanwhile."
    finding = _timed(
        case, "idle-unexplained", ns, 0, "The device idles, and the profile does not say why", detail, {}
    )
    return Finding(**{**finding.__dict__, "class_": "advice"})


RULES: tuple[Callable[[Case], Finding | None], ...] = (
    memory_pressure,
    memory_growth,
    input_bound,
    recompilation,
    device_sync,
    host_python,
    optimizer_loop,
    launch_bound,
    exposed_copy,
    exposed_collective,
    fp32_matmul,
    layout_conversion,
    unfused_attention,
    step_outliers,
    idle_unexplained,
)
