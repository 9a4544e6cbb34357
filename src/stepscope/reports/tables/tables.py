"""The tables of a report, section by section, for every rendering alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from stepscope.reports.model.report import BreakdownRow, OpRow, PhaseRow, RegionRow, Report, StepRow
from stepscope.reports.tables.coverage import coverage_tables
from stepscope.reports.tables.hang import hang_tables
from stepscope.reports.tables.ranks import rank_tables
from stepscope.reports.tables.roofline import roofline_tables
from stepscope.reports.tables.snapshot import snapshot_tables
from stepscope.reports.tables.table import Column, Table, table
from stepscope.reports.wording.memory import fullness, where
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.summary import longest_names, own_steps, placed
from stepscope.reports.wording.values import Kind
from stepscope.units import percent

_CALLS = Column("calls", "calls", "count")
_PROBLEMS = (
    Column("severity", "severity"),
    Column("code", "code"),
    Column("title", "problem"),
    Column("detail", "detail"),
    Column("fix", "what to do"),
    Column("rank", "rank", "number"),
    Column("count", "count", "count"),
)
_STEPS = (
    Column("rank", "rank", "number"),
    Column("device", "device", "number"),
    Column("step", "step", "number"),
    Column("start_ns", "start", "count", exact=True),
    Column("duration_ns", "duration", "ns"),
    Column("note", "note"),
)
_BREAKDOWN = (
    Column("part", "part"),
    Column("share", "share", "share"),
    Column("ns", "time", "ns"),
    Column("ns_per_step", "per step", "ns"),
    Column("named_share", "named", "share", minor=True),
    Column("names", "mostly", "name"),
)
_NAMES = (
    Column("place", "where"),
    Column("name", "name", "name"),
    Column("detail", "at or in", "name"),
    Column("thread", "thread"),
    Column("ns", "time", "ns"),
    Column("share", "of the part", "share"),
)
_FINDINGS = (
    Column("code", "code"),
    Column("class", "class"),
    Column("title", "finding"),
    Column("share", "share", "share"),
    Column("saves_ns_per_step", "saves per step", "ns"),
    Column("speedup_low", "speed-up from", "number"),
    Column("speedup_mid", "most likely", "number"),
    Column("speedup_high", "up to", "number"),
    Column("fix", "what to change"),
)
_STAGES = (
    Column("name", "stage", "name"),
    Column("kind", "kind"),
    Column("self_ns", "self", "ns"),
    Column("total_ns", "total", "ns"),
    _CALLS,
)
_OPS = (
    _CALLS,
    Column("host_self_ns", "host self", "ns"),
    Column("host_total_ns", "host total", "ns", minor=True),
    Column("device_self_ns", "device self", "ns"),
    Column("device_total_ns", "device total", "ns", minor=True),
    Column("share", "share", "share"),
    Column("memory_bytes", "allocated", "bytes", minor=True),
    Column("allocator_delta_bytes", "allocator change", "bytes", minor=True),
    Column("device_delta_bytes", "device change", "bytes", minor=True),
    Column("flops", "FLOPs", "flops", minor=True),
    Column("bytes", "bytes", "bytes", minor=True),
)
_OP = Column("name", "op", "name")
_OP_WORDS: tuple[tuple[str, Kind], ...] = (
    ("scope", "name"),
    ("shapes", "name"),
    ("placement", "name"),
    ("execution", "text"),
    ("forward", "name"),
)
_GRAPHS = (
    Column("name", "graph", "name"),
    Column("scope", "launched in", "name", minor=True),
    _CALLS,
    Column("nodes", "nodes", "count"),
    Column("host_ns", "host", "ns", minor=True),
    Column("device_ns", "device", "ns"),
    Column("named_share", "named", "share"),
    Column("mostly", "mostly", "name"),
)
_KERNELS = (
    Column("name", "kernel", "name"),
    Column("op", "op", "name"),
    _CALLS,
    Column("total_ns", "total", "ns"),
    Column("share", "share", "share"),
    Column("mean_ns", "mean", "ns"),
    Column("min_ns", "min", "ns", minor=True),
    Column("max_ns", "max", "ns", minor=True),
    Column("precision", "precision"),
    Column("tensor_cores", "tensor cores", "flag"),
    Column("eligible", "eligible", "flag", minor=True),
    Column("grid", "grid", "extent", minor=True),
    Column("block", "block", "extent", minor=True),
    Column("registers", "registers", "count", minor=True),
    Column("shared_bytes", "shared", "bytes", minor=True),
    Column("occupancy", "occupancy", "share", minor=True),
    Column("blocks_per_sm", "blocks/SM", "number", minor=True),
    Column("waves_per_sm", "waves", "number", minor=True),
)
_COPIES = (
    Column("direction", "direction"),
    Column("source", "from"),
    Column("target", "to"),
    _CALLS,
    Column("bytes", "bytes", "bytes"),
    Column("total_ns", "total", "ns"),
    Column("exposed_ns", "exposed", "ns"),
    Column("gb_per_s", "GB/s", "rate"),
)
_MEMORY = (
    Column("where", "device"),
    Column("source", "source", minor=True),
    Column("peak_bytes", "peak", "bytes"),
    Column("reserved_peak", "reserved", "bytes"),
    Column("capacity_bytes", "capacity", "bytes"),
    Column("growth_bytes_per_step", "growth per step", "bytes"),
    Column("never_freed_bytes", "never freed", "bytes", minor=True),
    Column("fragmentation", "fragmentation", "share", minor=True),
    Column("known_share", "recorded", "share", minor=True),
)
_LIVE = (
    Column("where", "device"),
    Column("kind", "kind"),
    Column("op", "op", "name"),
    Column("scope", "scope", "name"),
    Column("bytes", "bytes", "bytes"),
)
_COLLECTIVES = (
    Column("name", "operation", "name"),
    Column("group", "group", minor=True),
    Column("group_size", "ranks", "count"),
    Column("dtype", "dtype", minor=True),
    _CALLS,
    Column("bytes", "bytes", "bytes"),
    Column("total_ns", "total", "ns"),
    Column("exposed_ns", "exposed", "ns"),
    Column("overlapped_ns", "hidden", "ns", minor=True),
    Column("algorithm_gb_per_s", "algorithm GB/s", "rate", minor=True),
    Column("bus_gb_per_s", "bus GB/s", "rate"),
    Column("wait_ns", "waits", "ns"),
    Column("transfer_bus_gb_per_s", "bus GB/s without waits", "rate", minor=True),
)
_PHASES = (
    Column("name", "phase", "name"),
    _CALLS,
    Column("share", "share", "share"),
    Column("total_ns", "total", "ns"),
    Column("mostly", "mostly"),
)
_PATH = (
    Column("kind", "kind"),
    Column("place", "where"),
    Column("name", "event or wait", "name"),
    Column("share", "share", "share"),
    Column("ns", "time", "ns"),
    Column("count", "times", "count"),
    Column("event", "longest event", "count", minor=True, exact=True),
    Column("step", "in step", "count", minor=True, exact=True),
)
_SERVING = (
    Column("phase", "phase"),
    Column("executions", "executions", "count"),
    Column("batch_size", "batch size", "number"),
    Column("tokens", "tokens", "count"),
    Column("mean_ns", "mean", "ns"),
    Column("total_ns", "total", "ns"),
    Column("tokens_per_s", "tokens/s", "number"),
)
_REGIONS = (
    Column("name", "region", "name"),
    Column("count", "steps", "count"),
    Column("share", "share", "share"),
    Column("total_ns", "total", "ns"),
    Column("mean_ns", "mean", "ns"),
    Column("median_ns", "median", "ns"),
    Column("p90_ns", "p90", "ns", minor=True),
    Column("mostly", "mostly"),
    Column("finding", "first finding"),
)
_PRECISION = (Column("precision", "precision"), Column("share", "share of compute", "share"))
_UNKNOWN = (
    Column("name", "kernel of unknown precision", "name"),
    Column("op", "op", "name"),
    _CALLS,
    Column("ns", "total", "ns"),
    Column("share", "share of compute", "share"),
)
UNKNOWN_PRECISION = "unknown_precision"
TITLES = {
    "problems": "Problems of the capture",
    "hang": "Why the ranks hang",
    "findings": "What to change",
    "breakdown": "Where the time goes",
    "regions": "Regions",
    "phases": "Phases of the step",
    "serving": "Inference",
    "steps": "Steps",
    "critical_path": "Critical path",
    "input": "Input pipeline",
    "ops": "Ops",
    "kernels": "Kernels",
    "precision": "Precision",
    "roofline": "What compute needs at best",
    "device": "Device",
    "memory": "Memory",
    "collectives": "Communication",
    "coverage": "Coverage",
}


def tables_of(report: Report, section: str) -> list[Table]:
    """The tables of one section that have rows."""
    return [found for found in _WAYS[section](report) if found.rows]


def _problems(report: Report) -> list[Table]:
    return [table("problems", "problems", _PROBLEMS, report.problems)]


def _steps(report: Report) -> list[Table]:
    keys = ("rank", "device", "step", "start_ns", "duration_ns")
    rows = [
        {**{key: getattr(row, key) for key in keys}, "note": _step_note(row), **row.parts}
        for row in report.steps.rows
    ]
    parts = [Column(row.part, part(row.part).title, "ns") for row in report.breakdown]
    return [table("steps", "steps", (*_STEPS, *parts), rows)]


def _step_note(row: StepRow) -> str | None:
    return "partial" if row.partial else "outlier" if row.outlier else None


def _breakdown(report: Report) -> list[Table]:
    count = own_steps(report)
    rows: list[dict[str, Any]] = [
        {
            "part": row.part,
            "share": row.share,
            "ns": row.ns,
            "ns_per_step": row.ns // count if report.steps.rows and report.steps.source != "whole" else None,
            "named_share": row.named_share,
            "names": ", ".join(placed(each.name, each.place) for each in longest_names(row)) or None,
        }
        for row in report.breakdown
    ]
    by_part = [names_table(row) for row in report.breakdown]
    names = [
        {"part": row.part, **each}
        for row, names in zip(report.breakdown, by_part, strict=True)
        for each in names.rows
    ]
    total = sum(each.total for each in by_part)
    return [
        table("breakdown", "account", _BREAKDOWN, rows, bar="share"),
        table(
            "breakdown_names",
            "the account by name",
            (Column("part", "part"), *_NAMES),
            names,
            total=total,
            bar="share",
        ),
    ]


def _regions(report: Report) -> list[Table]:
    """One region beside the other: what follows below is about one of them."""
    keys = ("name", "count", "share", "total_ns", "mean_ns", "median_ns", "p90_ns")
    rows = [
        {
            **{key: getattr(row, key) for key in keys},
            "mostly": _mostly(row),
            "finding": row.findings[0].code if row.findings else None,
        }
        for row in report.regions
    ]
    return [table("regions", "regions", _REGIONS, rows, bar="share")]


def _phases(report: Report) -> list[Table]:
    rows = [
        {
            "name": row.name,
            "calls": row.calls,
            "share": row.share,
            "total_ns": row.total_ns,
            "mostly": _mostly(row),
            **row.parts,
        }
        for row in report.phases
    ]
    seen = [row.part for row in report.breakdown if any(row.part in phase.parts for phase in report.phases)]
    parts = [Column(name, part(name).title, "ns", minor=True) for name in seen]
    return [table("phases", "phases", (*_PHASES, *parts), rows, bar="share")]


def _critical_path(report: Report) -> list[Table]:
    return [table("critical_path", "critical path", _PATH, report.critical_path.rows, bar="share")]


def _serving(report: Report) -> list[Table]:
    return [table("serving", "executions", _SERVING, report.serving.phases)]


def _mostly(row: PhaseRow | RegionRow) -> str | None:
    """The parts that make up most of the phase or region."""
    largest = sorted(row.parts.items(), key=lambda item: -item[1])[:2]
    total = sum(row.parts.values())
    return ", ".join(f"{part(name).title} {percent(ns / total)}" for name, ns in largest) if total else None


def names_table(row: BreakdownRow) -> Table:
    """What one part of the account went to, by name."""
    rows = [
        {
            "place": each.place,
            "name": each.name,
            "detail": each.detail,
            "thread": each.thread,
            "ns": each.ns,
            "share": each.ns / row.ns,
        }
        for each in row.names
    ]
    return table(
        row.part, part(row.part).title, _NAMES, rows, total=max(row.names_total, len(rows)), bar="share"
    )


def _findings(report: Report) -> list[Table]:
    rows = [
        msgspec.to_builtins(found)
        | {f"speedup_{end}": figure for end, figure in msgspec.to_builtins(found.speedup).items()}
        for found in report.findings
    ]
    return [table("findings", "findings", _FINDINGS, rows)]


def _input(report: Report) -> list[Table]:
    found = report.input
    total = max(found.stages_total, len(found.stages))
    return [table("input", "stages", _STAGES, found.stages, total=total)]


def _ops(report: Report) -> list[Table]:
    """What the ops were split by is beside their names, the rest at the end; a job on the CPU has no device columns."""
    found = report.ops
    words = [Column(key, key, kind, minor=key not in found.by) for key, kind in _OP_WORDS]
    words += [Column("stack", "stack", "name")] if "stack" in found.by else []
    ahead = [column for column in words if not column.minor]
    behind = [column for column in words if column.minor]
    on_device = any(row.device_total_ns for row in found.rows)
    rows = [_op(row) if on_device else _without_device(_op(row)) for row in found.rows]
    graphs = [
        {**msgspec.structs.asdict(graph), "mostly": ", ".join(each.name for each in graph.kernels[:2])}
        for graph in found.graphs
    ]
    return [
        table("ops", "ops", (_OP, *ahead, *_OPS, *behind), rows, total=found.total, bar="share"),
        table("graphs", "graph replays", _GRAPHS, graphs),
    ]


def _op(row: OpRow) -> dict[str, Any]:
    """The host only launches a compiled program as a whole: of its ops it has no time, which is not a time of nothing."""
    found: dict[str, Any] = msgspec.structs.asdict(row)
    if row.execution == "graph" and row.device_total_ns and not row.host_total_ns:
        found |= {"host_self_ns": None, "host_total_ns": None}
    return found


def _without_device(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"device_self_ns": None, "device_total_ns": None}


def _kernels(report: Report) -> list[Table]:
    found = report.kernels
    return [table("kernels", "kernels", _KERNELS, found.rows, total=found.total, bar="share")]


def _precision(report: Report) -> list[Table]:
    shares = sorted(report.precision.shares.items(), key=lambda item: -item[1])
    rows = [{"precision": name, "share": share} for name, share in shares if share]
    found = report.precision
    return [
        table("precision", "precision", _PRECISION, rows, bar="share"),
        table(
            UNKNOWN_PRECISION,
            "kernels of unknown precision",
            _UNKNOWN,
            found.unknown,
            total=found.unknown_total,
        ),
    ]


def _device(report: Report) -> list[Table]:
    return [table("copies", "copies", _COPIES, report.device.copies)]


def _memory(report: Report) -> list[Table]:
    devices = [(where(report, found), found) for found in report.memory.devices]
    figures = ("source", "peak_bytes", "reserved_peak", "capacity_bytes", "growth_bytes_per_step", "never_freed_bytes", "fragmentation", "known_share")  # fmt: skip
    rows = [{"where": where, **{key: getattr(found, key) for key in figures}} for where, found in devices]
    live = [
        {"where": where, "kind": row.kind, "op": row.op, "scope": row.scope, "bytes": row.bytes}
        for where, found in sorted(devices, key=lambda device: fullness(device[1]), reverse=True)
        for row in found.at_peak
    ]
    total = sum(max(found.at_peak_total, len(found.at_peak)) for _, found in devices)
    return [
        table("memory", "memory", _MEMORY, rows),
        table("memory_at_peak", "live at the peak", _LIVE, live, total=total),
        *snapshot_tables(report),
    ]


def _collectives(report: Report) -> list[Table]:
    ranks = report.collectives.ranks
    columns = [
        Column(key, key.replace("_ns", "").replace("_", " "), _kind(key))
        for key in (ranks[0] if ranks else ())
    ]
    return [
        table("collectives", "operations", _COLLECTIVES, report.collectives.rows),
        table("collectives_ranks", "by rank", columns, ranks),
        *rank_tables(report.collectives),
    ]


def _kind(key: str) -> Kind:
    if key in ("calls", "matched", "last"):
        return "count"
    if key in ("rank", "waits_for"):
        return "number"
    return "ns" if key.endswith("_ns") else "share" if key.endswith("share") else "text"


_WAYS: dict[str, Callable[[Report], list[Table]]] = {
    "problems": _problems,
    "hang": hang_tables,
    "findings": _findings,
    "breakdown": _breakdown,
    "regions": _regions,
    "phases": _phases,
    "serving": _serving,
    "steps": _steps,
    "critical_path": _critical_path,
    "input": _input,
    "ops": _ops,
    "kernels": _kernels,
    "precision": _precision,
    "roofline": roofline_tables,
    "device": _device,
    "memory": _memory,
    "collectives": _collectives,
    "coverage": coverage_tables,
}
ORDER = tuple(_WAYS)
