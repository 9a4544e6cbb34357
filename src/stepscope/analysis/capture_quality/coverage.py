"""What the profile covers: which ops have a runtime, device time, memory, shapes and stacks, and why the rest has none.

Each share is of op calls inside steps, but `device_time`, the share of device time that is tied to an op, and `memory`,
the share of allocated bytes whose op is known. An op has a runtime if it has a duration on the host or work on the
device. `step_time` is the share of step time that the account explains.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.capture_quality.vendors import EMIT_SIZES, VENDOR_TOOLS
from stepscope.analysis.ops.graph_calls import REPLAY
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.memory import program_memory
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.lazy import dataclass
from stepscope.registers.policy.capture import COVERAGE_GAP
from stepscope.trace.frames import take
from stepscope.trace.graphs import graph_work
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
        "runtime": _share(inside, (pl.col("host_total_ns") > 0) | (pl.col("device_total_ns") > 0)),
        "device_time": _device_time(trace, calls),
        "memory": _memory(trace),
        "shapes": _share(inside, pl.col("shapes").is_not_null()),
        "stacks": _stacks(trace, inside),
        "step_time": _explained(account),
    }
    return Coverage(**figures, gaps=_gaps(trace, figures, calls))


def _share(rows: pl.DataFrame, wanted: pl.Expr) -> float | None:
    return None if rows.is_empty() else round(float(rows.select(wanted.fill_null(False).mean()).item()), 6)


def _device_time(trace: Trace, calls: pl.DataFrame) -> float | None:
    work = trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))["dur_ns"].sum()
    by_ops = calls.filter(pl.col("execution").ne_missing(REPLAY))
    return round(min(1.0, int(by_ops["device_self_ns"].sum()) / int(work)), 6) if work else None


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
    parts = account.parts
    total = int(parts["ns"].sum())
    lost = int(parts.filter(pl.col("part").is_in(["unexplained", "unrecorded"]))["ns"].sum())
    return round(1 - lost / total, 6) if total else None


def _untied(trace: Trace, calls: pl.DataFrame) -> str:
    """What most of the device time without an op is: `graph`, `program`, `copy` or `other`."""
    events = trace.events
    work = events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"])).select(
        "id", "track", "kind", "dur_ns"
    )
    launched = trace.links.filter(pl.col("why") == "launch")["to"]
    replayed = pl.concat([graph_work(trace)["event"], trace.kernels.drop_nulls("graph_node")["event"]])
    by_ops = trace.kernels.drop_nulls("op")["event"]
    by_ops = by_ops.filter(~by_ops.is_in(replayed.implode()))
    known = pl.concat([calls["event"].cast(pl.UInt32), by_ops])
    loose = work.filter(~pl.col("id").is_in(known.implode()))
    in_graph = loose["id"].is_in(replayed.implode())
    # A TPU has no stream on which anyone else could copy.
    in_program = take(trace.tracks.sort("id")["device_kind"] == "tpu", loose["track"])
    is_copy = (pl.col("kind") == "copy") & ~in_graph
    times = {
        "graph": int(loose.filter(in_graph)["dur_ns"].sum()),
        "program": int(loose.filter(is_copy & in_program)["dur_ns"].sum()),
        "copy": int(loose.filter(is_copy & ~in_program)["dur_ns"].sum()),
        "other": int(
            loose.filter((pl.col("kind") != "copy") & ~in_graph & ~pl.col("id").is_in(launched.implode()))[
                "dur_ns"
            ].sum()
        ),
    }
    return max(times, key=lambda name: times[name])


def _gaps(trace: Trace, figures: dict[str, float | None], calls: pl.DataFrame) -> list[dict[str, object]]:
    """Every figure that is not whole, why, and what would close it."""
    found: list[dict[str, object]] = []
    for what, share in figures.items():
        missing = 1.0 if share is None else 1 - share
        if missing > COVERAGE_GAP:
            reason, fix = _REASONS[what](trace, share, calls)
            if reason:
                found.append({"what": what, "share": round(missing, 6), "reason": reason, "fix": fix})
    return [*found, *_no_collectives(trace)]


def _no_collectives(trace: Trace) -> list[dict[str, object]]:
    """A rank of a job of several that never meets the others: something was not recorded."""
    world = trace.info.world_size or 1
    if world < 2 or (trace.events["role"] == "collective").any():
        return []
    fix = "Record the device as well; on CPUs with host_tracer_level=2."
    reason = f"The job has {world:,} ranks, and no event of this one is a collective."
    return [{"what": "collectives", "share": 1.0, "reason": reason, "fix": fix}]


Reason = tuple[str, str]
_NOTHING: Reason = ("", "")


def _option_off(trace: Trace, option: str) -> Reason | None:
    """PyTorch records a thing only if it is asked for."""
    if trace.info.framework != "pytorch" or trace.info.capture_options.get(option):
        return None
    tool = VENDOR_TOOLS.get(trace.info.format)
    if tool is not None and option == "record_shapes":
        return "The recorded ranges have no sizes.", EMIT_SIZES
    if tool is not None:
        return f"Files of {tool} are read without this.", f"torch.profiler.profile({option}=True)"
    return f"{option} was off.", f"torch.profiler.profile({option}=True)"


def _no_runtime(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    return ("Ops that took less time than the clock resolves.", "") if share else _NOTHING


def _no_device_time(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    kinds = set(trace.events["kind"].unique().drop_nulls().to_list())
    if share is None:
        return ("There is no device work in the profile.", "") if "runtime" in kinds else _NOTHING
    untied = _untied(trace, calls)
    if untied == "graph":
        return "Graph replay: the work of a graph has one launch, and no ops of its own.", _NAMES_GRAPHS
    if untied == "program":
        return (
            "Copies that the program's own ops start; they run beside the ops, and each has only its start and its end.",
            "",
        )
    if untied == "copy":
        return "Copies that no op asked for, such as those of the next batch.", ""
    return "Work that was launched outside of ops, or before the recording began.", ""


_NAMES_GRAPHS = (
    "Record the capture of the graph, in the same window or into capture_traces/ beside the profile: its ops then name the "
    "replay. Or profile a few steps without graphs."
)


def _no_memory(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    off = _option_off(trace, "profile_memory")
    if off is not None:
        return off
    if len(trace.modules):
        return f"A compiled program takes its memory as a whole; {_memory_of_programs(trace)}", ""
    if share is None:
        return "No allocation was recorded.", ""
    return "Allocations outside of ops: optimizer state, buffers made by user code or by the runtime.", ""


def _memory_of_programs(trace: Trace) -> str:
    if any(program_memory(read_module(hlo)) is not None for _, _, hlo in programs_that_ran(trace)):
        return "the row of source hlo shows what is in it."
    return "the file does not say what is in it."


def _no_shapes(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    off = _option_off(trace, "record_shapes")
    if off is not None:
        return off
    if not share:
        return "The profiler wrote no shapes.", ""
    return "Ops without tensor inputs carry no shapes.", ""


def _no_stacks(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    off = _option_off(trace, "with_stack")
    if off is not None:
        return off
    if trace.info.framework == "pytorch":
        return "Ops of the autograd engine run on threads without a Python stack.", ""
    if len(trace.modules):
        return "Ops of compiled programs run without a Python stack.", ""
    if trace.info.framework == "tensorflow":
        return "Ops of a graph run on the framework's own threads, without a Python stack.", ""
    return "Nothing around these ops was recorded.", "Record with stacks, or annotate the code around them."


def _no_step_time(trace: Trace, share: float | None, calls: pl.DataFrame) -> Reason:
    if share is None:
        return _NOTHING
    return "No event covers this time.", "Record with stacks, or annotate the code between ops."


_REASONS: dict[str, Callable[[Trace, float | None, pl.DataFrame], Reason]] = {
    "runtime": _no_runtime,
    "device_time": _no_device_time,
    "memory": _no_memory,
    "shapes": _no_shapes,
    "stacks": _no_stacks,
    "step_time": _no_step_time,
}
