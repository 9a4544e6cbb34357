"""Ops of TensorFlow's graphs by their scopes: which layer an op is of, and whether it is of the backward pass."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.names import INPUT_THREAD
from stepscope.analysis.host.tracks import by_track
from stepscope.trace.frames import filled, take
from stepscope.trace.trace import Trace

PRODUCTS = r"^_?\w*(MatMul|BatchMatMulV\d|Conv\dD|DepthwiseConv2dNative|Einsum)$"
_AROUND = r"^((Stateful)?PartitionedCall(_\d+)?/)+"
_GRADIENT = r"^gradient_tape(_\d+)?/"


def scoped_ops(trace: Trace, ops: pl.DataFrame) -> pl.DataFrame:
    """event, step, name, path, backward, start_ns and ns of ops with a scope, without those that make batches; path is the op's name in the forward pass."""
    events = trace.events
    makes_input = filled(take(by_track(trace, pl.col("thread").str.contains(INPUT_THREAD)), ops["track"]))
    mine = ops.filter(~makes_input, pl.col("scope").is_not_null(), pl.col("step").is_not_null())
    scope = pl.col("scope").cast(pl.String).str.replace(_AROUND, "")
    found = mine.select(
        "event",
        "step",
        pl.col("name").cast(pl.String),
        path=scope.str.replace(_GRADIENT, ""),
        backward=scope.str.contains(_GRADIENT),
        ns="host_self_ns",
    )
    return found.with_columns(start_ns=events["start_ns"].gather(found["event"])).sort("start_ns")
