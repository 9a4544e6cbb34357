"""Turns of a loop over a text that is padded to one length: each computes all positions and reads the one behind that of the turn before."""

from __future__ import annotations

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.shapes import arrays_in
from stepscope.registers.policy.repeated_work import GROWING_CALLS_LEAST, GROWING_PREFIXES

_PICKS = "aten::select"


def padded_turns(case: Case, calls: pl.DataFrame) -> pl.DataFrame | None:
    """start_ns, end_ns, rows, tokens, again of the turns, and of what `calls` (outermost products) are over all positions; None if there are none."""
    for rows, length, picks in _picks(case):
        after = picks["place"].diff()
        other = after.filter(after != 0)
        if picks["place"].n_unique() < GROWING_PREFIXES or (other == 1).sum() < GROWING_CALLS_LEAST * len(
            other
        ):
            continue
        mine = calls.filter(pl.col("rows") == rows)
        if mine.is_empty():
            continue
        ends = pl.col("start_ns") + case.trace.events["dur_ns"].gather(mine["event"])
        turns = (
            mine.with_columns(turn=picks["start_ns"].search_sorted(mine["start_ns"]), end_ns=ends)
            .group_by("turn", maintain_order=True)
            .agg(pl.col("start_ns").first(), pl.col("end_ns").max())
        )
        turns = turns.filter(pl.col("turn") < len(picks))
        again = (after == 1).fill_null(bool((other == 1).all())).gather(turns["turn"])
        return turns.with_columns(again=again, rows=pl.lit(rows), tokens=pl.lit(float(length)))
    return None


def _picks(case: Case) -> list[tuple[int, int, pl.DataFrame]]:
    """By the size of what is picked from: positions of all sequences, of one, and start_ns and place of the picks."""
    ops = case.ops.filter(pl.col("name").cast(pl.String) == _PICKS, pl.col("step").is_not_null())
    texts = case.trace.ops.select(
        "event", text=pl.col("shapes").cast(pl.String), inputs=pl.col("concrete_inputs").cast(pl.String)
    )
    table = ops.select("event").join(texts, on="event", how="inner", maintain_order="left").drop_nulls()
    table = table.with_columns(start_ns=case.trace.events["start_ns"].gather(table["event"]))
    known = {
        key: _place(*key) for key in table.select("text", "inputs").unique(maintain_order=True).iter_rows()
    }
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for start, text, inputs in table.sort("start_ns").select("start_ns", "text", "inputs").iter_rows():
        place = known[text, inputs]
        if place is not None:
            found.setdefault(place[:2], []).append((start, place[2]))
    schema = {"start_ns": pl.Int64, "place": pl.Int64}
    return [(*size, pl.DataFrame(rows, schema=schema, orient="row")) for size, rows in found.items()]


def _place(text: str, inputs: str) -> tuple[int, int, int] | None:
    """Positions of all sequences, of one, and which is picked of each."""
    try:
        sequences, positions, _ = arrays_in(text)[0]
        _, axis, place, *_ = msgspec.json.decode(inputs, type=list[str])
        picked = int(place) if int(axis) == 1 else -1
    except (msgspec.DecodeError, IndexError, ValueError):
        return None
    return (sequences * positions, positions, picked) if picked >= 0 else None
