"""Graphs: device work that was captured once and is launched as a whole.

A replay is one call on the host (cudaGraphLaunch, hipGraphLaunch; XLA's command buffers and torch.compile's
reduce-overhead use the same) with all its work linked to it. During a capture the same calls appear as in eager
execution, inside their ops, on any thread, and launch nothing: the n-th of them is the n-th node of the graph.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from difflib import SequenceMatcher
from typing import cast

import polars as pl

from stepscope.lazy import dataclass, pattern
from stepscope.registers.policy.graphs import GRAPH_ALIKE, GRAPH_LONGEST
from stepscope.trace.columns import repeated
from stepscope.trace.judged_texts import contains
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import names_of, rows_by_event
from stepscope.trace.schema import Columns, Text
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_LAUNCH = r"^(cuda|cu|hip)GraphLaunch"
_BEGINS = r"^(cuda|cu|hip)StreamBeginCapture"
_ENDS = r"^(cuda|cu|hip)StreamEndCapture"
_RECORDS = r"^(cuda|cu|hip)(\w*LaunchKernel|LaunchCooperativeKernel|Memcpy\w*Async|Memset\w*Async)"
_KERNEL = pattern(r'"kernel":\s*("(?:[^"\\]|\\.)*")')
_ANNOTATION = pattern(r'"(?:str|annotation)":\s*("(?:[^"\\]|\\.)+")')
NODES: Columns = {"launch": pl.UInt32, "event": pl.UInt32, "place": pl.UInt32}
_NAMED: Columns = {"event": pl.UInt32, "shapes": Text, "dtypes": Text, "scope": Text, "external_id": pl.Int64}


@dataclass(frozen=True)
class Capture:
    """The nodes of one captured graph in order: the kernel's name where it is known, and the op that asked for it."""

    trace: Trace
    kernels: tuple[str | None, ...]
    ops: tuple[int | None, ...]


def is_graph_launch(events: pl.DataFrame) -> pl.Series:
    """Which events launch a graph."""
    return _are(events, _LAUNCH)


@kept_with_trace
def graph_work(trace: Trace) -> pl.DataFrame:
    """launch, event, place: the device work of each launch of a graph, in the order of its nodes."""
    events = trace.events
    launches = is_graph_launch(events)
    if not launches.any():
        return pl.DataFrame(schema=NODES)
    links = trace.links.filter(pl.col("why") == "launch").select(launch="from", event="to")
    links = links.filter(launches.gather(links["launch"]))
    kind = events["kind"].gather(links["event"])
    links = links.filter(kind.is_in(["kernel", "copy", "memset"]))
    node = trace.kernels["graph_node"].gather(
        rows_by_event(trace.kernels["event"], len(events)).gather(links["event"])
    )
    ordered = links.with_columns(node=node, start=events["start_ns"].gather(links["event"])).sort(
        "launch", "node", "start", nulls_last=True
    )
    # Copies have no node number: where some work has none, the order in time decides.
    by_time = ordered.sort("launch", "start", maintain_order=True)
    has_gap = ordered["node"].null_count() > 0
    found = by_time if has_gap else ordered
    return found.select("launch", "event", place=pl.int_range(pl.len(), dtype=pl.UInt32).over("launch"))


def captured_calls(trace: Trace) -> pl.Series:
    """The calls that recorded a node of a graph instead of launching it."""
    calls = [pl.Series(ids, dtype=pl.UInt32) for ids in _captured(trace)]
    return pl.concat(calls) if calls else pl.Series(dtype=pl.UInt32)


def _captured(trace: Trace) -> Iterator[list[int]]:
    """The calls of each capture, in order."""
    spans = capture_spans(trace)
    if spans.is_empty():
        return
    # Other threads take part (a backward pass runs on its own), and others still launch real work meanwhile.
    events = trace.events
    launched = trace.links.filter(pl.col("why") == "launch")["from"]
    calls = (
        events.filter(_are(events, _RECORDS)).filter(~pl.col("id").is_in(launched.implode())).sort("start_ns")
    )
    for low, high in spans.iter_rows():
        ids = calls.filter(pl.col("start_ns").is_between(low, high))["id"].to_list()
        if ids:
            yield ids


def capture_spans(trace: Trace) -> pl.DataFrame:
    """start_ns, end_ns of each capture, which one thread does, in the order of time."""
    events = trace.events
    begins, ends = (
        events.filter(_are(events, pattern)).select("track", "start_ns", end_ns="start_ns").sort("start_ns")
        for pattern in (_BEGINS, _ENDS)
    )
    found = begins.drop("end_ns").join_asof(
        ends, on="start_ns", by="track", strategy="forward", allow_exact_matches=False, check_sortedness=False
    )
    return found.select("start_ns", "end_ns").drop_nulls()


def captures(trace: Trace) -> list[Capture]:
    """The graphs that were captured in the trace."""
    events = trace.events
    found = list(_captured(trace))
    if not found:
        return []
    enclosing = ancestors(events, events["kind"] == "op")
    names = _kernels_of_calls(trace, captured_calls(trace))
    return [
        Capture(trace, tuple(names.get(one) for one in ids), tuple(enclosing.gather(ids))) for ids in found
    ]


def named_by_captures(trace: Trace, found: list[Capture]) -> Trace:
    """The trace, in which work of graphs has a row of `ops`: the op, scope, shapes and types of its capture, or what
    annotations in the file call it."""
    work = graph_work(trace)
    if work.is_empty():
        return trace
    rows = list(_of_captures(trace, work, found)) if found else []
    named = {row["event"] for row in rows}
    rows += [row for row in _annotated(trace, work["event"]) if row["event"] not in named]
    added = pl.DataFrame(rows, schema=_NAMED).filter(~pl.col("event").is_in(trace.ops["event"].implode()))
    if added.is_empty():
        return trace
    ops = pl.concat([trace.ops, added], how="diagonal").select(trace.ops.columns).sort("event")
    tables = cast("MutableMapping[str, pl.DataFrame]", trace.tables)
    return Trace.over(ChainMap({"ops": ops}, tables), trace.cold)


def _of_captures(trace: Trace, work: pl.DataFrame, found: list[Capture]) -> Iterator[dict[str, object]]:
    """Rows for the work of launches whose kernels come in the order of a capture."""
    names = trace.events["name"].cast(pl.String)
    known: dict[tuple[str, ...], list[tuple[int, Capture]]] = {}
    for _, nodes in work.group_by("launch", maintain_order=True):
        sequence = tuple(names.gather(nodes["event"]))
        if sequence not in known:
            known[sequence] = _matched(sequence, found)
        for place, (node, capture) in enumerate(known[sequence]):
            if node >= 0:
                yield from _row(capture, node, int(nodes["event"][place]))


def _annotated(trace: Trace, work: pl.Series) -> Iterator[dict[str, object]]:
    """What torch.cuda.graph's annotations say of kernels: `mark_kernels` names them, by the ids of their nodes."""
    rest = trace.cold.get("rest")
    if rest is None or "json" not in rest.columns:
        return
    rows = rest.filter(pl.col("event").is_in(work.implode())).select("event", "json")
    for event, text in rows.iter_rows():
        written = _ANNOTATION.search(_text(text))
        if written:
            yield {"event": event, "scope": str(json.loads(written[1], strict=False))}


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _matched(sequence: tuple[str, ...], found: list[Capture]) -> list[tuple[int, Capture]]:
    """For each place of a replay the node of the capture that fits best, -1 where none does; empty without a capture."""
    best: list[tuple[int, Capture]] = []
    likeness = 0.0
    for capture in found:
        nodes, alike = _aligned(sequence, capture.kernels)
        if alike > likeness:
            best, likeness = [(node, capture) for node in nodes], alike
    return best


def _aligned(sequence: tuple[str, ...], kernels: tuple[str | None, ...]) -> tuple[list[int], float]:
    """Nodes by place, and the share of places whose names agree.

    CUDA's calls do not name their kernel: there a capture with as many nodes is taken, before none but after one with names.
    """
    places = list(range(len(sequence)))
    known = sum(kernel is not None for kernel in kernels)
    if len(sequence) == len(kernels):
        same = sum(one == other for one, other in zip(sequence, kernels, strict=True))
        if not known:
            return places, GRAPH_ALIKE / 2
        if same >= GRAPH_ALIKE * known:
            return places, same / known
    if not known or max(len(sequence), len(kernels)) > GRAPH_LONGEST:
        return [], 0.0
    blocks = SequenceMatcher(None, sequence, [kernel or "" for kernel in kernels], autojunk=False)
    nodes = [-1] * len(sequence)
    for at, node, size in blocks.get_matching_blocks():
        nodes[at : at + size] = range(node, node + size)
    alike = sum(node >= 0 for node in nodes) / max(1, len(nodes))
    return (nodes, alike) if alike >= GRAPH_ALIKE else ([], 0.0)


def _row(capture: Capture, node: int, event: int) -> Iterator[dict[str, object]]:
    op = capture.ops[node]
    if op is None:
        return
    ops = capture.trace.ops
    at = ops["event"].search_sorted(op)
    facts = ops.row(at, named=True) if at < len(ops) and ops["event"][at] == op else {}
    name = str(capture.trace.events["name"][op]).replace("/", "_")
    scope = f"{facts['scope']}/{name}" if facts.get("scope") else name
    yield {
        "event": event,
        "shapes": facts.get("shapes"),
        "dtypes": facts.get("dtypes"),
        "scope": scope,
        "external_id": op,
    }


def _are(events: pl.DataFrame, pattern: str) -> pl.Series:
    names = names_of(events)
    wanted = names.filter(contains(names.cast(pl.String), pattern))
    if wanted.is_empty():
        return repeated(False, len(events), pl.Boolean)
    return (events["name"].is_in(wanted.implode()) & (events["kind"] == "runtime")).fill_null(False)


def _kernels_of_calls(trace: Trace, calls: pl.Series) -> dict[int, str]:
    """The names of kernels that ROCm notes with the calls that launch them."""
    rest = trace.cold.get("rest")
    if rest is None or "json" not in rest.columns:
        return {}
    rows = rest.filter(pl.col("event").is_in(calls.implode())).select("event", "json")
    found = {}
    for event, text in rows.iter_rows():
        written = _KERNEL.search(_text(text))
        if written:
            found[event] = str(json.loads(written[1], strict=False))
    return found
