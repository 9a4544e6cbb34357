"""Passes of one model in a step that end in different heads: one pass would give the results of all.

A profile shows no data flow, but TensorFlow names each op by the call of the model that it is of, and leaves out what a result
does not need. Passes over other data (pairs, a discriminator's, a target network's) end in the same head.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import polars as pl

from stepscope.analysis.ops.graph_scopes import PRODUCTS
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY

_TAKES_BATCH = r"^IteratorGetNext"
_COUNTER = re.compile(r"(_\d+)+$")


@dataclass(frozen=True)
class ModelPasses:
    """`model`: its name without the counter of calls; `events`: the ops of all passes that they share."""

    model: str
    passes: int
    heads: tuple[str, ...]
    events: pl.Series


def find_passes(ops: pl.DataFrame) -> ModelPasses | None:
    """Of the model whose passes take most; ops as `scoped_ops` has them. None where a step takes several batches."""
    taken = ops.filter(pl.col("name").str.contains(_TAKES_BATCH))
    if len(taken) > ops["step"].n_unique():
        return None
    parts = pl.col("path").str.splitn("/", 2).struct
    # The last part of a name is the op's own, which depends on what it is fused with.
    inside = ops.select(
        "event",
        "ns",
        root=parts[0],
        tail=parts[1],
        product=pl.col("name").str.contains(PRODUCTS) & ~pl.col("backward"),
    ).drop_nulls("tail")
    layered = inside.with_columns(layer=pl.col("tail").str.replace(r"/[^/]+$", ""))
    products = layered.filter("product", pl.col("layer") != pl.col("tail"))
    times = products.group_by("root", "layer").agg(pl.col("ns").sum()).sort("root", "layer")
    models: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for root, layer, ns in times.iter_rows():
        models[_COUNTER.sub("", root)][root][layer] = ns
    found = [_shared(model, calls, layered) for model, calls in models.items() if len(calls) > 1]
    return max((each for each in found if each), key=lambda each: len(each.events), default=None)


def _shared(model: str, calls: dict[str, dict[str, int]], rows: pl.DataFrame) -> ModelPasses | None:
    """The calls that go through the longest layer, if each goes on into a layer of its own."""
    longest = max(
        _layers(calls.values()), key=lambda layer: sum(call.get(layer, 0) for call in calls.values())
    )
    passes = {root: call for root, call in calls.items() if longest in call}
    shared = set.intersection(*(set(call) for call in passes.values()))
    counts = [layer for call in passes.values() for layer in call]
    heads = {root: [layer for layer in call if counts.count(layer) == 1] for root, call in passes.items()}
    if len(passes) < 2 or not all(heads.values()):
        return None
    common = sum(ns for call in passes.values() for layer, ns in call.items() if layer in shared)
    if common <= MAJORITY * sum(sum(call.values()) for call in passes.values()):
        return None
    alone = pl.lit(False)
    for root, layers in heads.items():
        for layer in layers:
            alone |= (pl.col("root") == root) & pl.col("tail").str.starts_with(f"{layer}/")
    mine = rows.filter(pl.col("root").is_in(list(passes)), ~alone)
    return ModelPasses(model, len(passes), tuple(each[-1] for each in heads.values()), mine["event"])


def _layers(calls: Iterable[dict[str, int]]) -> list[str]:
    return sorted({layer for call in calls for layer in call})
