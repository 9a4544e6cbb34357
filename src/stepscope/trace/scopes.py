"""Ancestors in the nesting of events, and the path of modules that an op ran in."""

from __future__ import annotations

import polars as pl

from stepscope.native import order
from stepscope.trace.columns import buffer, repeated, rows_or_null, series
from stepscope.trace.lookup import names_of, parents_of, rows_by_event
from stepscope.trace.schema import Text

NONE = order.NONE
_MODULE = "nn.Module: "
_DEEPEST = 100  # no model nests deeper, and the paths of a thousand levels would fill any memory


def ancestors(events: pl.DataFrame, wanted: pl.Series) -> pl.Series:
    """For each event its closest ancestor that is wanted, or null."""
    up = parents_of(events)
    return rows_or_null("ancestor", order.nearest(up, buffer(wanted.cast(pl.UInt8))))


def at_or_inside(events: pl.DataFrame, wanted: pl.Series) -> pl.Series:
    """For each event whether it is wanted, or inside one that is."""
    return wanted | ancestors(events, wanted).is_not_null()


def sums_below(events: pl.DataFrame, values: pl.Series) -> pl.Series:
    """For each event the sum of the values of all events inside it, and of its own; counts where they are truth values."""
    own = values.cast(pl.Int64)
    return series("below", order.subtree_sums(parents_of(events), buffer(own)), pl.Int64)


def with_module_scopes(ops: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Ops with the path of the modules whose Python calls enclose them, where the file names none itself."""
    if ops.is_empty():
        return ops
    is_module = _is_module(events)
    if not is_module.any():
        return ops
    inside = ancestors(events, is_module)
    paths = _paths(events, is_module, inside)
    scope = paths["path"].gather(rows_by_event(paths["id"], len(events))).gather(inside.gather(ops["event"]))
    given = (
        ops["scope"]
        if "scope" in ops.columns
        else pl.Series("scope", [None], dtype=Text).extend_constant(None, len(ops) - 1)
    )
    return ops.with_columns(scope=pl.select(pl.coalesce(given, scope)).to_series())


def _is_module(events: pl.DataFrame) -> pl.Series:
    names = names_of(events)
    modules = names.filter(names.cast(pl.String).str.starts_with(_MODULE))
    if modules.is_empty():
        return repeated(False, len(events), pl.Boolean)
    return events["name"].is_in(modules.implode()).fill_null(False) & (events["kind"] == "python")


def _paths(events: pl.DataFrame, is_module: pl.Series, inside: pl.Series) -> pl.DataFrame:
    """The path of each module call, root first: Model_0/Block_3/Linear_7."""
    calls = pl.DataFrame({"id": events["id"], "name": events["name"], "outer": inside}).filter(is_module)
    calls = calls.with_columns(pl.col("name").cast(pl.String).str.strip_prefix(_MODULE))
    level = calls.filter(pl.col("outer").is_null()).select("id", path="name")
    found = [level]
    while not level.is_empty() and len(found) < _DEEPEST:
        level = calls.join(level.rename({"id": "outer", "path": "above"}), on="outer").select(
            "id", path=pl.col("above") + "/" + pl.col("name")
        )
        found.append(level)
    return pl.concat(found).with_columns(pl.col("path").cast(Text))
