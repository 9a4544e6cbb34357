"""What a host event stands for when the device idles behind it: waiting for data, compiling, user code, dispatch, …"""

from __future__ import annotations

import polars as pl

from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

# A role that explains everything below it, however deep: an op inside the DataLoader is input, not dispatch.
_EXPLAINING_ROLES = {"input": "input", "compile": "compile", "io": "io", "collective": "host_collective"}
_WAITS = (
    r"(?i)(Stream|Device|Event|Context)Synchronize|^(cuda|hip)Memcpy$|BlockHostUntilDone|BlockHostUntilReady"
    r"|block_until_ready|^Event Sync|^Stream Sync|^Context Sync|AwaitReady|ToLiteral"
)
# Python frames of the frameworks themselves; what they do between kernels is dispatch.
_FRAMEWORK_FRAME = (
    r"^(nn\.Module: |<built-in |torch/|torch\\|<string>|<frozen |<eval_with_key>|contextlib\.py|functools\.py|threading\.py)"
    r"|^\$?(jax|jaxlib|flax|optax|tensorflow|keras)/|^\$(api|pjit|array|core|dispatch|profiler|contextlib|<unknown>)(\.py)?:"
)


def host_causes(trace: Trace) -> pl.DataFrame:
    """For every event its cause, and the event that gives the cause its name (itself or an ancestor).

    Columns: cause (null where the event alone explains nothing), named_by.
    """
    events = trace.events
    own = _own_causes(events)
    strong = _own_strong(events)
    by_strong = _nearest_or_self(events, strong.is_not_null())
    user_frame = _nearest_or_self(events, own == "python")
    op = _nearest_or_self(events, (events["kind"] == "op").fill_null(False))
    frame = pl.DataFrame(
        {"id": events["id"], "own": own, "strong_by": by_strong, "user_by": user_frame, "op_by": op}
    )
    strong_of = strong.gather(frame["strong_by"])
    return frame.select(
        cause=pl.coalesce(strong_of, pl.col("own")),
        named_by=pl.when(pl.col("strong_by").is_not_null())
        .then(pl.col("strong_by"))
        .when(pl.col("own") == "python")
        .then(pl.col("user_by"))
        .otherwise(pl.coalesce("op_by", "id")),
    )


def is_wait(trace: Trace) -> pl.Series:
    """Host events in which a thread waits for the device."""
    names = trace.events["name"].unique().drop_nulls()
    waits = names.filter(names.cast(pl.String).str.contains(_WAITS))
    host = trace.events["track"].is_in(trace.tracks.filter(pl.col("what") == "host")["id"].implode())
    return host & trace.events["name"].is_in(waits.implode()).fill_null(False)


def _own_strong(events: pl.DataFrame) -> pl.Series:
    role = pl.col("role").cast(pl.String)
    cause = role.replace_strict(
        list(_EXPLAINING_ROLES), list(_EXPLAINING_ROLES.values()), default=None, return_dtype=pl.String
    )
    return events.select(
        pl.when(pl.col("kind") == "overhead").then(pl.lit("profiler")).otherwise(cause)
    ).to_series()


def _own_causes(events: pl.DataFrame) -> pl.Series:
    names = events["name"].unique().drop_nulls()
    framework = names.filter(names.cast(pl.String).str.contains(_FRAMEWORK_FRAME))
    is_framework = pl.col("name").is_in(framework.implode())
    kind = pl.col("kind")
    return events.select(
        pl.when(pl.col("role") == "step").then(pl.lit(None, dtype=pl.String))
        .when((kind == "python") & is_framework).then(pl.lit("dispatch"))
        .when(kind.is_in(["python", "annotation"])).then(pl.lit("python"))
        .when(kind.is_in(["op", "runtime", "span", "module"])).then(pl.lit("dispatch"))
        .otherwise(None)
        .alias("own")
    ).to_series()  # fmt: skip


def _nearest_or_self(events: pl.DataFrame, wanted: pl.Series) -> pl.Series:
    above = ancestors(events, wanted.fill_null(False))
    return pl.select(pl.when(wanted.fill_null(False)).then(events["id"]).otherwise(above)).to_series()
