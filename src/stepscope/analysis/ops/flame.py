"""Where the time goes, as a tree: by module or name scope, or by the call stack.

By scope, an op lies below the modules or scopes it ran in; by stack, every event of a host thread lies below those that
enclosed it, and calls with the same path are one node. Costs are those of costs.py. Only what is inside steps counts, if there
are steps. Totals are sums over the subtree.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.native import order
from stepscope.registers.policy.tables import DEEPEST_STACK, FLAME_NODES
from stepscope.trace.columns import buffer, series
from stepscope.trace.schema import KINDS, ROLES, Text
from stepscope.trace.trace import Trace

NO_SCOPE = "(no scope)"
THREAD, SCOPE, OP = "thread", "module", "op"
# What an event is for counts for more than what it is.
_ROLES = ("input", "collective", "compile", "io")
_Category = pl.Enum([*KINDS, *_ROLES, THREAD, *(role for role in ROLES if role not in _ROLES)])
_NONE = order.NONE
_STEP = r"^ProfilerStep#[0-9]+$"


@dataclass(frozen=True)
class Flame:
    """`nodes` has parent (-1 at the top), name (a place in `names`), own, total, calls, kind and like; parents come first.

    `kind` is the kind of the events, or `thread`, `module`; `like` is one of the events, null where there is none.
    """

    names: list[str]
    nodes: pl.DataFrame
    left_out: int = 0


def by_scope(calls: pl.DataFrame) -> Flame:
    """Ops below their scopes. `calls` is a row per call of an op with its cost as `own`."""
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    rows = inside.group_by(pl.col("scope", "name").cast(pl.String), maintain_order=True).agg(
        pl.col("own").sum(), calls=(~pl.col("repeated")).sum().cast(pl.Int64)
    )
    places: dict[tuple[int, str, str], int] = {}
    sums: list[list[int]] = []
    for scope, name, own, count in rows.iter_rows():
        at = -1
        above = scope.split("/")[:DEEPEST_STACK] if scope else [NO_SCOPE]
        for word, kind in [*((word, SCOPE) for word in above), (name or "", OP)]:
            key = (at, word, kind)
            if key not in places:
                places[key] = len(sums)
                sums.append([0, 0])
            at = places[key]
        sums[at] = [sums[at][0] + own, sums[at][1] + count]
    nodes = [
        (word, up, own, count, kind, None)
        for (up, word, kind), (own, count) in zip(places, sums, strict=True)
    ]
    return finish_nodes(pl.DataFrame(nodes, schema=_SCHEMA, orient="row"))


def by_stack(trace: Trace, ns: pl.Series) -> Flame:
    """Events of host threads below those that enclosed them; `ns` is what each event is charged with."""
    rows = _host_rows(trace, ns)
    threads = rows.select("thread").unique(maintain_order=True).with_row_index("root")
    rows = rows.join(threads, on="thread", maintain_order="left")
    levels = [_thread_nodes(threads)]
    node_of = pl.repeat(_NONE, len(trace.events), dtype=pl.UInt32, eager=True)
    known = len(threads)
    for level in rows.sort("depth", maintain_order=True).partition_by("depth", maintain_order=True)[
        :DEEPEST_STACK
    ]:
        placed, made = _merged(level, node_of.gather(level["parent"]), known)
        levels.append(made)
        node_of = node_of.scatter(placed["id"], placed["node"])
        known += len(made)
    return finish_nodes(pl.concat(levels))


def _thread_nodes(threads: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit(0, pl.Int64)
    return threads.select(
        name="thread",
        parent=pl.lit(-1, pl.Int64),
        own=nothing,
        calls=nothing,
        kind=pl.lit(THREAD),
        like=pl.lit(None, pl.Int64),
    )


def _host_rows(trace: Trace, ns: pl.Series) -> pl.DataFrame:
    """id, name, parent, depth, thread, ns and 1 for what counts, of the events on host threads."""
    events = trace.events
    inside = events["step"].is_not_null() if events["step"].count() else events["id"].is_not_null()
    charged = pl.select(pl.when(inside).then(ns).otherwise(0)).to_series()
    rows = events.select(
        "id", "track", "parent", "depth", name=without_numbers(events["name"]), kind=category()
    ).with_columns(ns=charged, counted=inside.cast(pl.Int64))
    return rows.join(host_threads(trace), on="track", maintain_order="left").drop("track")


def host_threads(trace: Trace) -> pl.DataFrame:
    """track and thread: what threads of the host are called."""
    thread = pl.coalesce("thread", "process", pl.lit("unknown thread"))
    return trace.tracks.filter(pl.col("what") == "host").select(track="id", thread=thread)


def category() -> pl.Expr:
    """What an event is, or is for."""
    role = pl.when(pl.col("role").is_in(_ROLES)).then(pl.col("role").cast(_Category))
    return pl.coalesce(role, pl.col("kind").cast(_Category))


def without_numbers(names: pl.Series) -> pl.Series:
    """Every step has a marker of its own name: without its number all steps have the same path."""
    known = names.unique().drop_nulls()
    markers = known.filter(known.cast(pl.String).str.contains(_STEP))
    if markers.is_empty():
        return names
    one = pl.lit("ProfilerStep", dtype=Text)
    merged = pl.when(names.is_in(markers.implode())).then(one).otherwise(names)
    return pl.select(name=merged).to_series()


def _merged(level: pl.DataFrame, above: pl.Series, known: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events of one depth: which node each belongs to, and the new nodes, one for each parent and name."""
    has_parent = (above != _NONE).fill_null(False)
    level = level.with_columns(
        above=pl.select(pl.when(has_parent).then(above).otherwise(level["root"])).to_series()
    )
    made = (
        level.group_by("above", "name", maintain_order=True)
        .agg(pl.col("ns").sum(), pl.col("counted").sum(), pl.col("kind").first(), like=pl.col("id").first())
        .with_row_index("node", offset=known)
    )
    placed = level.select("id", "above", "name").join(
        made.select("above", "name", "node"), on=["above", "name"], maintain_order="left"
    )
    nodes = made.select(
        name=pl.col("name").cast(pl.String),
        parent=pl.col("above").cast(pl.Int64),
        own="ns",
        calls="counted",
        kind=pl.col("kind").cast(pl.String),
        like=pl.col("like").cast(pl.Int64),
    )
    return placed, nodes


def host_times(trace: Trace) -> pl.Series:
    """The duration of each event without that of the events inside it."""
    events = trace.events
    inner = events.filter(pl.col("parent").is_not_null()).group_by("parent").agg(pl.col("dur_ns").sum())
    taken = pl.zeros(len(events), dtype=pl.Int64, eager=True).scatter(inner["parent"], inner["dur_ns"])
    own: pl.Series = (events["dur_ns"] - taken).clip(lower_bound=0)
    return own


def device_times(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """By event, the device time of what the op itself launched."""
    known = calls.filter(pl.col("device_self_ns") > 0)
    zeros = pl.zeros(len(trace.events), dtype=pl.Int64, eager=True)
    charged: pl.Series = zeros.scatter(known["event"], known["device_self_ns"])
    return charged


_SCHEMA = {
    "name": pl.String,
    "parent": pl.Int64,
    "own": pl.Int64,
    "calls": pl.Int64,
    "kind": pl.String,
    "like": pl.Int64,
}


def finish_nodes(nodes: pl.DataFrame) -> Flame:
    """The tree, with totals; nodes that cost nothing are left out, and the smallest where there are too many to draw."""
    up = nodes["parent"].replace(-1, _NONE).cast(pl.UInt32)
    total = order.subtree_sums(buffer(up), buffer(nodes["own"]))
    nodes = nodes.with_columns(total=series("total", total, pl.Int64)).with_row_index("id")
    some = nodes.filter(pl.col("total") > 0)
    # An ancestor's total is no smaller and its number is lower: whoever stays, they stay.
    kept = some.sort("total", "id", descending=[True, False]).head(FLAME_NODES).sort("id")
    places = pl.DataFrame({"parent": kept["id"].cast(pl.Int64), "place": pl.int_range(len(kept), eager=True)})
    names = kept["name"].unique(maintain_order=True)
    numbers = pl.DataFrame({"name": names, "number": pl.int_range(len(names), eager=True)})
    placed = kept.join(places, on="parent", how="left", maintain_order="left").join(
        numbers, on="name", how="left", maintain_order="left"
    )
    return Flame(
        names.to_list(),
        placed.select(
            parent=pl.col("place").fill_null(-1),
            name="number",
            own="own",
            total="total",
            calls="calls",
            kind="kind",
            like="like",
        ),
        len(some) - len(kept),
    )
