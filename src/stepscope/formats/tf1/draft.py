"""Traced runs as a draft: their nodes become events, ops, kernels, copies and memory."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.tf1.devices import (
    allocator_device,
    copy_bytes,
    copy_direction,
    copy_ends,
    event_kind,
    event_name,
    kernel_details,
)
from stepscope.formats.tf1.run_metadata import Node
from stepscope.formats.tf1.runs import Placed, Run, Tracks
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problem, Problems, problem
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import TraceInfo

_FARTHEST = 1 << 62
_EVENT_COLUMNS = ("track", "name", "kind", "role", "source_category", "start_ns", "dur_ns", "step")
Rows = list[dict[str, Any]]
Launchers = dict[str, list[tuple[int, int]]]  # start and event of each op, by the name of its node


def run_draft(info: TraceInfo, runs: list[Run], problems: Problems) -> Draft:
    """The tables of the trace. Its clock starts with the first node."""
    runs = [run for run in (_timed(run, problems) for run in runs) if run.nodes]
    info.base_unix_ns = min((placed.node.start_ns for run in runs for placed in run.nodes), default=0)
    info.devices = _devices(runs)
    tables = _Tables(Tracks(runs), info.base_unix_ns, problems)
    for run in runs:
        tables.add(run)
    tables.add_markers(runs)
    return tables.draft(info)


def _timed(run: Run, problems: Problems) -> Run:
    """The run without nodes that cannot be placed in time."""
    kept = []
    for placed in run.nodes:
        start, dur = placed.node.start_ns, placed.node.dur_ns
        if start == 0:
            problems.add(_untimed())
        elif not 0 < start < _FARTHEST or abs(dur) >= _FARTHEST - start:
            problems.add(_out_of_range())
        else:
            kept.append(placed)
    return Run(run.tag, run.step, kept, run.threads)


def _devices(runs: list[Run]) -> list[dict[str, Any]]:
    """Each device once, streams aside."""
    found = {p.device.placement: p.device for run in runs for p in run.nodes}
    return [
        {"name": name, "kind": device.kind, "id": device.number} for name, device in sorted(found.items())
    ]


class _Tables:
    """The rows of each table, filled run by run."""

    def __init__(self, tracks: Tracks, base_ns: int, problems: Problems) -> None:
        self.tracks = tracks
        self.base_ns = base_ns
        self.problems = problems
        self.rows: dict[str, Rows] = {name: [] for name in ("links", "ops", "kernels", "copies", "memory")}
        self.events: dict[str, list[Any]] = {name: [] for name in _EVENT_COLUMNS}
        self.cold: Rows = []

    def add(self, run: Run) -> None:
        """All nodes of the run; kernels and copies come after the ops that launched them."""
        launchers: Launchers = {}
        ordered = sorted(
            run.nodes, key=lambda placed: (placed.device.part != "executor", placed.node.start_ns)
        )
        for placed in ordered:
            event = self._add_event(placed)
            if placed.device.part == "executor":
                launchers.setdefault(placed.node.name, []).append((placed.node.start_ns, event))
            self._add_details(placed, event, launchers)

    def _add_event(self, placed: Placed) -> int:
        node, device = placed.node, placed.device
        kind = event_kind(device, node.name, node.label)
        self._append(
            track=self.tracks.of(placed),
            name=event_name(kind, node.name, node.label),
            kind=kind,
            source_category=device.text,
            start_ns=node.start_ns - self.base_ns,
            dur_ns=node.dur_ns,
        )
        return len(self.events["name"]) - 1

    def _append(self, **values: Any) -> None:
        for name in _EVENT_COLUMNS:
            self.events[name].append(values.get(name))

    def _add_details(self, placed: Placed, event: int, launchers: Launchers) -> None:
        node, kind = placed.node, self.events["kind"][event]
        self.cold.append({"event": event, "json": _arguments(placed, self.base_ns)})
        if self.tracks.repeats(placed):
            return
        launcher = _launcher(node, launchers) if placed.device.part in ("stream", "summary") else None
        if launcher is not None:
            self.rows["links"].append({"from": launcher, "to": event, "why": "launch"})
        if kind == "op":
            self.rows["ops"].append(_op(placed, event))
        elif kind == "kernel":
            self.rows["kernels"].append({"event": event, "op": launcher} | kernel_details(node.label))
        elif kind == "copy":
            self.rows["copies"].append(_copy(placed, event))
        self._add_memory(placed, event)

    def _add_memory(self, placed: Placed, event: int) -> None:
        for found in placed.node.allocations:
            if not 0 < found.time_ns < _FARTHEST or abs(found.bytes) >= _FARTHEST:
                self.problems.add(_impossible_allocation())
                continue
            kind, number = allocator_device(found.allocator, placed.device)
            self.rows["memory"].append(
                {
                    "event": event,
                    "device": number,
                    "device_kind": kind,
                    "allocator": found.allocator or None,
                    "time_ns": found.time_ns - self.base_ns,
                    "bytes": found.bytes,
                }
            )

    def add_markers(self, runs: list[Run]) -> None:
        """Each run as a step, from its first start to its last end, on a track of its own."""
        track = self.tracks.add({"process": "runs", "thread": "runs", "what": "derived"})
        for run in runs:
            start = min(placed.node.start_ns for placed in run.nodes)
            end = max(placed.node.start_ns + max(placed.node.dur_ns, 0) for placed in run.nodes)
            step = run.step if run.step is not None and 0 <= run.step < 1 << 31 else None
            self._append(
                track=track,
                name=run.tag or "(untagged run)",
                kind="annotation",
                role="step",
                source_category="tagged_run_metadata",
                start_ns=start - self.base_ns,
                dur_ns=end - start,
                step=step,
            )

    def draft(self, info: TraceInfo) -> Draft:
        """The finished draft."""
        types = TABLES["events"]
        events = {name: pl.Series(name, values, types[name]) for name, values in self.events.items()}
        return Draft(
            info=info,
            events=pl.DataFrame(events),
            tracks=_frame("tracks", self.tracks.rows),
            **{name: _frame(name, rows) for name, rows in self.rows.items()},
            cold={"arguments": pl.DataFrame(self.cold, schema={"event": pl.UInt32, "json": pl.String})},
            problems=self.problems,
        )


def _frame(table: str, rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES[table])


def _op(placed: Placed, event: int) -> dict[str, Any]:
    node = placed.node
    return {
        "event": event,
        "shapes": f"[{', '.join(node.shapes)}]" if node.shapes else None,
        "dtypes": msgspec.json.encode(node.dtypes).decode() if node.dtypes else None,
        "scope": node.name or None,
        "placement": placed.device.placement or None,
    }


def _copy(placed: Placed, event: int) -> dict[str, Any]:
    node = placed.node
    source, target = copy_ends(node.label)
    direction = copy_direction(node.name, f"{placed.device.text} {node.label}")
    return {
        "event": event,
        "bytes": copy_bytes(node.label),
        "direction": direction,
        "source": source,
        "target": target,
    }


def _launcher(node: Node, launchers: Launchers) -> int | None:
    """The last op of that name to start before; the tracer writes `node:Type` or `node` for what a node launched."""
    for name in (node.name, node.name.split(":")[0]):
        started = launchers.get(name, [])
        before = bisect_right(started, node.start_ns, key=lambda op: op[0])
        if before:
            return started[before - 1][1]
    return None


def _arguments(placed: Placed, base_ns: int) -> str:
    """All that the file says of a node and no table holds; absurd figures aside."""
    node = placed.node
    figures = {name: value for name, value in node.details.items() if abs(value) < _FARTHEST}
    if "scheduled_ns" in figures:
        figures["scheduled_ns"] -= base_ns
    found = {"node": node.name, "label": node.label, "device": placed.device.text} | figures
    return msgspec.json.encode(found).decode()


def _untimed() -> Problem:
    return problem("untimed-events", "{count} nodes have no start time; they were left out.")


def _out_of_range() -> Problem:
    return problem("time-out-of-range", "{count} nodes have impossible times; they were left out.")


def _impossible_allocation() -> Problem:
    return problem(
        "bad-allocations", "{count} allocations have impossible times or sizes; they were left out."
    )
