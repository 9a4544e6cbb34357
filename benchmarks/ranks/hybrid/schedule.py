"""What waits for what in one replica of a pipeline, from one recorded step of it.

An operation is a stage, a kind and its number. All replicas and steps have the same schedule, so that one step of one replica shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

Op = tuple[int, str, int]  # stage, kind, number
Row = dict[str, Any]

FORWARD, BACKWARD = "forward-compute", "backward-compute"
GATHER, SCATTER, SEPARATE = "params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce"
NORM, EMBEDDING, CLIP = "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "optimizer-clip-main-grad"
COLLECT, OPTIMIZER = "gc", "optimizer"
# In which direction the other end of an exchange is.
EXCHANGES = {"forward-send": 1, "forward-recv": -1, "backward-send": -1, "backward-recv": 1}
COMMUNICATION = (*EXCHANGES, GATHER, SCATTER, SEPARATE, NORM, EMBEDDING, CLIP)
OVER_REPLICAS = (GATHER, SCATTER, SEPARATE, CLIP)
_CLOCK_ERROR = 5e-5  # seconds


@dataclass
class Schedule:
    """`edges`: what is over before what begins; `meetings`: operations of one replica that begin their transfer together."""

    edges: list[tuple[Op, Op]] = field(default_factory=list)
    meetings: list[list[Op]] = field(default_factory=list)

    def chain(self, ops: Sequence[Op]) -> None:
        """One after the other."""
        self.edges += pairwise(ops)


def schedule_of(rows: pl.DataFrame) -> Schedule:
    """The schedule of one step of one replica."""
    found = Schedule()
    stages = {
        stage: _Stage(stage, part.sort("start", "seq_id", "optype").to_dicts())
        for (stage,), part in rows.sort("stage").group_by("stage", maintain_order=True)
    }
    last = max(stages)
    chunks = (rows["mc"].max() or 0) + 1  # type: ignore[operator]
    overlapped = SEPARATE in set(rows["optype"])
    exchanged: dict[tuple[int, str], list[Op]] = {}
    for stage in stages.values():
        found.chain(stage.computes)
        for kind in EXCHANGES:
            found.chain(stage.of(kind))
            exchanged[stage.number, kind] = _exchange(found, stage, kind, chunks * (last + 1))
        _first_backward(found, stage)
        _parameters(found, stage)
        _finish(found, stage, stage.number in (0, last), overlapped)
    found.meetings += _pairs(exchanged, last + 1)
    found.meetings.append([op for stage in (stages[0], stages[last]) for op in stage.of(EMBEDDING)][:2])
    found.meetings.append([op for stage in stages.values() for op in stage.of(CLIP)])
    return found


class _Stage:
    """The operations of one stage, in the order in which they began."""

    def __init__(self, number: int, rows: list[Row]) -> None:
        self.number = number
        self.rows: dict[Op, Row] = {(number, row["optype"], row["seq_id"]): row for row in rows}
        self.computes = [op for op in self.rows if op[1] in (FORWARD, BACKWARD)]

    def of(self, *kinds: str) -> list[Op]:
        return [op for op in self.rows if op[1] in kinds]

    def one(self, kind: str, number: int) -> Op | None:
        op = (self.number, kind, number)
        return op if op in self.rows else None


def _exchange(found: Schedule, stage: _Stage, kind: str, model_chunks: int) -> list[Op]:
    """Ties sends and receives to what computes what they carry; those that carry something.

    Recorders list exchanges that were never launched: before the first result, after the last use, and at both ends of the model.
    """
    compute = FORWARD if kind.startswith("forward") else BACKWARD
    computes = [op for op in stage.computes if op[1] == compute]
    if not computes:
        return []
    sends = kind.endswith("send")
    first_end = min(stage.rows[op]["end"] for op in computes)
    last_start = max(stage.rows[op]["start"] for op in computes)
    used = [
        op
        for op in stage.of(kind)
        if (
            stage.rows[op]["end"] >= first_end - _CLOCK_ERROR
            if sends
            else stage.rows[op]["start"] <= last_start + _CLOCK_ERROR
        )
    ]
    # The first receive of the first stage is not always listed.
    skipped = 1 if not sends and len(used) + 1 == len(computes) else 0
    carried = []
    for turn, op in enumerate(used, start=skipped):
        matched = stage.one(compute, turn)
        if matched is None:
            continue
        if sends:
            found.edges.append((matched, op))
        else:
            found.edges.append((op, matched))
            before = stage.one(compute, turn - 1)
            found.edges += [(before, op)] if before is not None else []
        if 0 <= stage.rows[matched]["gmc"] + EXCHANGES[kind] < model_chunks:
            carried.append(op)
    return carried


def _pairs(exchanged: dict[tuple[int, str], list[Op]], stages: int) -> Iterator[list[Op]]:
    """Each send with the receive of the stage it goes to, in their order."""
    for (stage, kind), sends in exchanged.items():
        if kind.endswith("send"):
            other = (stage + EXCHANGES[kind]) % stages
            receives = exchanged.get((other, kind.replace("send", "recv")), [])
            yield from ([*pair] for pair in zip(sends, receives, strict=False))


def _first_backward(found: Schedule, stage: _Stage) -> None:
    """The first gradients are asked for before the last forward pass of the warm-up."""
    kinds = [op[1] for op in stage.computes]
    first = kinds.index(BACKWARD) if BACKWARD in kinds else 0
    if first >= 2:
        before = stage.computes[first - 2]
        firsts = (stage.one(kind, 0) for kind in ("backward-recv", "backward-send"))
        found.edges += [(before, op) for op in firsts if op is not None]


def _parameters(found: Schedule, stage: _Stage) -> None:
    """Parameters of a model chunk are gathered before its first forward pass; replicas share one stream."""
    found.chain(stage.of(GATHER, SCATTER))
    gathered = {stage.rows[op]["mc"]: op for op in sorted(stage.of(GATHER), key=lambda op: op[2])}
    for chunk, op in gathered.items():
        first = next((each for each in stage.of(FORWARD) if stage.rows[each]["mc"] == chunk), None)
        found.edges += [(op, first)] if first is not None else []


def _finish(found: Schedule, stage: _Stage, has_embedding: bool, overlapped: bool) -> None:
    """After the last backward pass: collection of garbage, reductions of gradients, clipping, the optimizer."""
    scatters = sorted(stage.of(SCATTER), key=lambda op: op[2])
    last = max(stage.computes, key=lambda op: stage.rows[op]["end"], default=None)
    collects = stage.of(COLLECT)
    found.edges += [(last, op) for op in collects if last is not None]
    embedding = stage.of(EMBEDDING) if has_embedding else []
    reductions = stage.of(SEPARATE) if overlapped else scatters
    after = [*stage.of(NORM), *embedding, *reductions, *stage.of(CLIP), *stage.of(OPTIMIZER)]
    found.chain(after)
    found.edges += [(op, after[0]) for op in collects if after]
    if overlapped:
        found.edges += [(op, after[0]) for op in scatters[-1:] if after]
        _overlapped(found, stage, scatters)


def _overlapped(found: Schedule, stage: _Stage, scatters: Sequence[Op]) -> None:
    """Gradients of a model chunk are reduced when its last backward pass is over, beside those of the other chunks."""
    firsts = {stage.rows[op]["mc"]: op for op in reversed(scatters)}
    for chunk, op in firsts.items():
        passes = [each for each in stage.of(BACKWARD) if stage.rows[each]["mc"] == chunk]
        if passes:
            found.edges.append((max(passes, key=lambda each: stage.rows[each]["end"]), op))
