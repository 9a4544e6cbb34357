"""What the profile covers: which ops have a runtime, device time, memory, shapes and stacks, and why the rest has none.

Each share is of op calls inside steps, but `device_time`: the share of device time that is tied to an op. `step_time`
is the share of step time that the account explains.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.account import Account
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Coverage:
    """Named as in the report; `gaps`: what, share, reason, fix."""

    runtime: float | None
    device_time: float | None
    memory: float | None
    shapes: float | None
    stacks: float | None
    step_time: float | None
    gaps: list[dict[str, object]]


def coverage(trace: Trace, calls: pl.DataFrame, account: Account | None) -> Coverage:
    """Shares, and a gap with its reason for each that is not whole. `calls` are those of `ops.op_calls`."""
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    figures: dict[str, float | None] = {
        "runtime": _share(inside, pl.col("host_total_ns") > 0),
        "device_time": _device_time(trace, calls),
        "memory": _memory(trace),
        "shapes": _share(inside, pl.col("shapes").is_not_null()),
        "stacks": _stacks(trace, inside),
        "step_time": _explained(account),
    }
    return Coverage(**figures, gaps=_gaps(trace, figures))


def _share(rows: pl.DataFrame, wanted: pl.Expr) -> float | None:
    return None if rows.is_empty() else round(float(rows.select(wanted.fill_null(False).mean()).item()), 6)


def _device_time(trace: Trace, calls: pl.DataFrame) -> float | None:
    work = trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))["dur_ns"].sum()
    return round(min(1.0, int(calls["device_self_ns"].sum()) / int(work)), 6) if work else None


def _memory(trace: Trace) -> float | None:
    """The share of allocated bytes whose op is known."""
    allocated = trace.memory.filter(pl.col("bytes") > 0)
    if allocated.is_empty():
        return None
    is_op = trace.events["kind"] == "op"
    op = ancestors(trace.events, is_op).gather(allocated["event"])
    known = int(allocated.filter(op.is_not_null())["bytes"].sum())
    return round(known / int(allocated["bytes"].sum()), 6)


def _stacks(trace: Trace, inside: pl.DataFrame) -> float | None:
    if inside.is_empty():
        return None
    row = rows_by_event(trace.ops["event"], len(trace.events)).gather(inside["event"])
    return round(trace.ops["python_parent"].gather(row).count() / len(inside), 6)


def _explained(account: Account | None) -> float | None:
    if account is None or account.slices.is_empty():
        return None
    parts = account.parts()
    total = int(parts["ns"].sum())
    lost = int(parts.filter(pl.col("part").is_in(["unexplained", "unrecorded"]))["ns"].sum())
    return round(1 - lost / total, 6) if total else None


def _gaps(trace: Trace, figures: dict[str, float | None]) -> list[dict[str, object]]:
    """Every figure that is not whole, why, and what would close it."""
    found: list[dict[str, object]] = []
    for what, share in figures.items():
        missing = 1.0 if share is None else 1 - share
        if missing > 0.005:
            reason, fix = _reason(trace, what, share)
            if reason:
                found.append({"what": what, "share": round(missing, 6), "reason": reason, "fix": fix})
    return found


def _reason(trace: Trace, what: str, share: float | None) -> tuple[str, str]:
    options = trace.info.capture_options
    kinds = set(trace.events["kind"].unique().drop_nulls().to_list())
    torch = trace.info.framework == "pytorch"
    if what == "shapes" and torch and not options.get("record_shapes"):
        return "record_shapes was off.", "torch.profiler.profile(record_shapes=True)"
    if what == "stacks" and torch and not options.get("with_stack"):
        return "with_stack was off.", "torch.profiler.profile(with_stack=True)"
    if what == "stacks" and torch:
        return "Ops of the autograd engine run on threads without a Python stack.", ""
    if what == "memory" and torch and not options.get("profile_memory"):
        return "profile_memory was off.", "torch.profiler.profile(profile_memory=True)"
    if what == "memory" and share is None:
        return "No allocation was recorded.", ""
    if what == "memory":
        return "Allocations outside of ops: optimizer state, buffers made by user code or by the runtime.", ""
    if what == "device_time" and share is None:
        return ("There is no device work in the profile.", "") if "runtime" in kinds else ("", "")
    if what == "device_time" and trace.kernels["graph_node"].count():
        return (
            "Kernels of a CUDA graph have one launch and no ops of their own.",
            "Profile a few steps without graphs to see their ops.",
        )
    if what == "device_time":
        return "Work that was launched outside of ops, or before the recording began.", ""
    if what == "step_time":
        return "No event covers this time.", "Record with stacks, or annotate the code between ops."
    if what == "shapes":
        return "Ops without tensor inputs carry no shapes.", ""
    return "", ""
