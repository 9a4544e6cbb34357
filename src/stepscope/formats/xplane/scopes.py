"""Where in the program an op or a piece of device work comes from: name scopes, or module and HLO op."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.decode import Events
from stepscope.formats.xplane.kinds import TF_OP
from stepscope.formats.xplane.stats import values_at
from stepscope.trace.schema import Text

# What XLA writes where it knows no op of the framework.
_NO_SCOPE = ("", "XlaModule")


def scopes(events: pl.DataFrame, known: Events, name_class: bytes) -> pl.DataFrame:
    """Event and scope, for all that have one: `tf_op`, else module and HLO op, else the name under the op's name."""
    found = [_framework_scopes(known)]
    if known.stats.has("hlo_op") or known.name_stats.has("hlo_op"):
        found.append(_hlo_scopes(known, found[0]))
    if TF_OP in name_class:
        found.append(_name_scopes(events, known, name_class, found))
    return pl.concat(found)


def _framework_scopes(known: Events) -> pl.DataFrame:
    ops = known.texts("tf_op")
    path = pl.col("value").cast(pl.String).str.replace(r":[^:/]*$", "")
    by_value = ops.select(pl.col("value").unique()).with_columns(scope=path)
    by_value = by_value.filter(~pl.col("scope").is_in(_NO_SCOPE)).with_columns(pl.col("scope").cast(Text))
    if by_value.is_empty():
        return pl.DataFrame(schema={"event": pl.UInt32, "scope": Text})
    return ops.join(by_value, on="value", maintain_order="left").select("event", "scope")


def _hlo_scopes(known: Events, done: pl.DataFrame) -> pl.DataFrame:
    """Module and op. Several ops are joined by `::`, the innermost last."""
    ops = known.texts("hlo_op").rename({"value": "op"})
    if len(done):
        ops = ops.join(done, on="event", how="anti", maintain_order="left")
    ops = ops.with_columns(
        module=values_at(ops["event"], known.texts("hlo_module").rename({"event": "owner"}))
    )
    op = pl.col("op").cast(pl.String).str.replace_all("::", "/")
    path = pl.concat_str([pl.col("module").cast(pl.String), op], separator="/", ignore_nulls=True)
    distinct = ops.select("op", "module").unique().with_columns(scope=path.cast(Text))
    return ops.join(distinct, on=["op", "module"], nulls_equal=True, maintain_order="left").select(
        "event", "scope"
    )


def _name_scopes(
    events: pl.DataFrame, known: Events, name_class: bytes, done: list[pl.DataFrame]
) -> pl.DataFrame:
    """TensorFlow's ops are named by type, and underneath by their place in the graph."""
    is_op = pl.Series([name == TF_OP for name in name_class] + [False] * (len(known.names) - len(name_class)))
    path = known.names.select(
        pl.when(is_op).then(pl.col("raw").str.replace(r":[^:]*$", "")).cast(Text)
    ).to_series()
    is_wanted = is_op.gather(known.name_rows) & (events["kind"] == "op")
    rows = events.select(event=pl.int_range(pl.len(), dtype=pl.UInt32)).filter(is_wanted)
    rows = rows.with_columns(scope=path.gather(known.name_rows.filter(is_wanted)))
    for frame in done:
        rows = rows.join(frame, on="event", how="anti") if len(frame) else rows
    return rows
