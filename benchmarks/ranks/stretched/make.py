"""The traces of simulated ranks, each by its own clock: the tables of the real trace, its times moved, collectives put in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from benchmarks.ranks.nccl import ELEMENTS, KERNELS
from benchmarks.ranks.stretched.base import Floats, Ints, base_of
from benchmarks.ranks.stretched.simulate import Meeting, Simulated
from stepscope.trace.schema import TABLES, conform
from stepscope.trace.trace import Trace

START_UNIX_NS = 1_790_000_000_000_000_000


def traces(simulated: Simulated) -> Iterator[tuple[int, Trace]]:
    """Rank and trace of those that are not missing."""
    for rank in range(simulated.case.ranks):
        if rank not in simulated.case.missing:
            yield rank, trace_of(simulated, rank)


def trace_of(simulated: Simulated, rank: int) -> Trace:
    """The trace of one rank."""
    base = _recorded(simulated, rank)
    events = base.events
    start = events["start_ns"].to_numpy().astype(np.int64)
    end = start + events["dur_ns"].to_numpy()
    begun = by_clock(simulated, rank, _moved(simulated, rank, start, "right"))
    ended = by_clock(simulated, rank, _moved(simulated, rank, end, "left"))
    moved = events.with_columns(start_ns=pl.Series(begun), dur_ns=pl.Series(np.maximum(ended - begun, 0)))
    meetings = list(_of_rank(simulated, rank))
    track, ours = _collective_events(simulated, rank, meetings, len(events), len(base.tracks))
    world = simulated.case.ranks
    info = replace(
        base.info,
        rank=rank,
        world_size=world,
        host=f"host{rank // 8}",
        base_unix_ns=START_UNIX_NS,
        path=f"rank{rank}",
    )
    return Trace(
        {
            **{name: base.tables[name] for name in ("links", "ops", "copies")},
            "kernels": _kernels(simulated, rank, base),
            "tracks": pl.concat([base.tracks, track]),
            "events": pl.concat([moved, ours]),
            "collectives": _collectives(simulated, meetings, len(events)),
            "traces": info.frame(),
        }
    )


def _recorded(simulated: Simulated, rank: int) -> Trace:
    """What the rank does; some were recorded for fewer steps."""
    case = simulated.case
    return base_of(case.source, case.steps - case.ended.get(rank, 0)).trace


def by_clock(simulated: Simulated, rank: int, true_ns: Floats) -> Ints:
    """What the rank's clock shows at these true times."""
    shown = true_ns * (1 + simulated.drift[rank]) + simulated.offset[rank]
    return np.asarray(np.rint(shown), dtype=np.int64)


def _moved(simulated: Simulated, rank: int, times: Ints, side: str) -> Floats:
    """True times of recorded ones; what ends where a collective was put in ends before it, what begins there after it."""
    base = simulated.base
    done = np.concatenate([[0.0], np.cumsum(simulated.pace[rank] * np.diff(base.edges))])
    outside = np.minimum(times - base.edges[0], 0) + np.maximum(times - base.edges[-1], 0)
    waited = np.concatenate([[0.0], np.cumsum(simulated.holes[rank])])
    cuts = base.edges[base.cuts]
    passed = np.searchsorted(cuts, times, side="right" if side == "right" else "left")
    return np.asarray(np.interp(times, base.edges, done) + outside + waited[passed])


def _of_rank(simulated: Simulated, rank: int) -> Iterator[tuple[Meeting, int]]:
    """The meetings of the rank with its place among their members."""
    skipped = simulated.case.short.get(rank, 0)
    steps = simulated.case.steps - simulated.case.ended.get(rank, 0)
    for meeting in simulated.meetings:
        if meeting.step >= steps:
            return
        place = int(np.searchsorted(meeting.members, rank))
        if place < len(meeting.members) and meeting.members[place] == rank:
            if skipped:
                skipped -= 1
            else:
                yield meeting, place


def _collective_events(
    simulated: Simulated, rank: int, meetings: list[tuple[Meeting, int]], first_id: int, track: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    start = by_clock(simulated, rank, np.array([m.arrival[place] for m, place in meetings]))
    end = by_clock(simulated, rank, np.array([m.end[place] for m, place in meetings]))
    rows = pl.DataFrame(
        {
            "id": np.arange(first_id, first_id + len(meetings)),
            "track": np.full(len(meetings), track),
            "name": [KERNELS[m.name] for m, _ in meetings],
            "kind": ["kernel"] * len(meetings),
            "role": ["collective"] * len(meetings),
            "start_ns": start,
            "dur_ns": end - start,
            "depth": np.zeros(len(meetings)),
            "step": [simulated.base.steps[m.step] for m, _ in meetings],
        }
    )
    stream = {
        "id": track, "process": "GPU", "thread": "stream 20", "stream": 20, "device": simulated.base.device,
        "device_kind": "gpu", "what": "device",
    }  # fmt: skip
    return pl.DataFrame([{**dict.fromkeys(TABLES["tracks"]), **stream}], schema=TABLES["tracks"]), conform(
        "events", rows
    )


def _kernels(simulated: Simulated, rank: int, base: Trace) -> pl.DataFrame:
    """More work means more blocks."""
    kernels = base.kernels
    if np.all(simulated.grown[rank] == 1.0):
        return kernels
    numbers = pl.Series(simulated.base.steps, dtype=pl.Int32)
    step = base.events["step"].gather(kernels["event"])
    factor = step.replace_strict(
        numbers, pl.Series(simulated.grown[rank]), default=1.0, return_dtype=pl.Float64
    )
    wide = kernels["grid"].arr.get(0).cast(pl.Float64) * factor
    grid = pl.concat_list(
        wide.ceil().cast(pl.UInt32).alias("x"),
        kernels["grid"].arr.get(1).alias("y"),
        kernels["grid"].arr.get(2).alias("z"),
    )
    return kernels.with_columns(grid=pl.select(grid.cast(TABLES["kernels"]["grid"])).to_series())


def _collectives(simulated: Simulated, meetings: list[tuple[Meeting, int]], first_id: int) -> pl.DataFrame:
    numbered = simulated.case.numbered
    rows = [
        {
            "event": first_id + at, "name": meeting.name, "dtype": "Float", "elements": ELEMENTS, "elements_out": ELEMENTS,
            "bytes": 4 * ELEMENTS, "group": meeting.group, "group_size": len(meeting.members),
            "group_ranks": str(meeting.members.tolist()), "sequence": meeting.sequence if numbered else None,
        }
        for at, (meeting, _) in enumerate(meetings)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=TABLES["collectives"])
