"""One pass of a model for each of many inputs within one step, on a host that computes by itself: nothing is copied to a device.

A function picks one row of a tensor after the other and calls the same module with each, as a batch of one. What a loop over time steps
picks it gives to a recurrent cell with the state before, and text that is generated begins with an embedding: neither counts.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.calls.passes import first_op, module_calls, nearest
from stepscope.trace.lookup import are_named, events_named
from stepscope.trace.trace import Trace

_PICKS = ("aten::select", "aten::slice", "aten::index", "aten::index_select", "aten::unsqueeze")
_CELLS = r"^aten::(lstm_cell|gru_cell|rnn_tanh_cell|rnn_relu_cell|lstm|gru|rnn_tanh|rnn_relu)$"


def host_passes(trace: Trace, frames: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, launches: the calls of modules that one of these frames makes for one row after the other."""
    events = trace.events
    calls = module_calls(events, frames)
    inside = nearest(events, calls["call"])
    if len(calls):
        first = first_op(trace, inside)
        recurrent = inside.filter(events_named(events, lambda names: names.str.contains(_CELLS)))
        turns = calls.join(first, on="call", how="left", maintain_order="left").with_columns(
            cell=pl.col("call").is_in(recurrent.drop_nulls().implode())
        )
        alike = turns.group_by("frame", "name").agg(
            of_one=(pl.col("of_one") & ~pl.col("of_indices") & ~pl.col("cell")).fill_null(False).all(),
            times=pl.len(),
        )
        picked = alike.join(_picks(events), on="frame").filter("of_one", pl.col("picks") >= pl.col("times"))
        calls = calls.join(picked, on=["frame", "name"], how="semi", maintain_order="left")
    held = pl.DataFrame({"call": inside.gather(launching)}).drop_nulls()
    counts = held.group_by("call").agg(launches=pl.len())
    return calls.join(counts, on="call", maintain_order="left").select("call", "launches")


def _picks(events: pl.DataFrame) -> pl.DataFrame:
    """frame, picks: how often a function takes a row, or makes one a batch."""
    ops = are_named(events["name"], lambda names: names.is_in(_PICKS)) & (events["kind"] == "op")
    parents = events["parent"].filter(ops)
    # A slice in Python calls the op through a function of the interpreter.
    through = events["kind"].gather(parents) == "python"
    above = pl.select(pl.when(through).then(parents)).to_series()
    both = pl.concat([above, events["parent"].gather(above)]).drop_nulls()
    return pl.DataFrame({"frame": both}).group_by("frame").agg(picks=pl.len())
