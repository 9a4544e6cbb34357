"""Memory is allocated from the driver and given back in every step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.place import Place
from stepscope.native.host.lineage import USER
from stepscope.registers.calibration.profiler import WARM_DISPATCH
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

COLLECTS = r"^<built-in function collect>|^\$gc collect"
_FIX_WITH_GARBAGE = "Remove gc.collect() and torch.cuda.empty_cache() from the loop: tensors are freed without them, and the caching allocator keeps their memory for the next step. If reference cycles hold tensors, collect once in an epoch."


def find(case: Case) -> Finding | None:
    """Calls of the driver's allocator that keep the device waiting; with them, garbage that the loop collects to have more to give back."""
    calls = case.free(pl.col("part") == "allocator")
    if calls.is_empty():
        return None
    asked = is_named(case.trace.events, COLLECTS)
    collecting = case.free(pl.col("part") == "python", pl.col("named_by").is_in(asked.arg_true().implode()))
    if collecting.is_empty() or case.is_of_one_step(collecting):
        return of_part(case, RULE, calls, lambda: _cached(case))
    found = of_part(case, RULE, pl.concat([calls, collecting]), lambda: _cached(case, asked))
    if found is not None:
        found.fix = _FIX_WITH_GARBAGE
        found.where = _callers(case, collecting) or found.where
    return found


def _callers(case: Case, collecting: pl.DataFrame) -> list[Place]:
    """The user's functions that collect garbage."""
    own = host_codes(case.trace) == USER
    rows = collecting.select("ns", named_by=ancestors(case.trace.events, own).gather(collecting["named_by"]))
    return case.places(rows.drop_nulls())


def _cached(case: Case, asked: pl.Series | None = None) -> Change:
    """The calls take no time, nor do those `asked` for; at most, the waits for the device that they need go as well, and ops find their memory at hand."""
    calls = pl.col("cause") == "allocator"
    if asked is not None:
        calls |= pl.lit(asked.gather(case.plan.host["event"]).fill_null(False)) & (
            pl.col("cause") == "python"
        )
    smallest = case.plan.with_host(calls)
    items = case.plan.host.filter(calls)["item"].unique().cast(pl.Int64)
    beside = pl.concat([items, items - 1]).unique().implode()
    without_waits = smallest.without_waits(pl.col("item").cast(pl.Int64).is_in(beside))
    return Change(smallest, without_waits.with_host(pl.col("cause") == "dispatch", WARM_DISPATCH))


RULE: Rule[Case] = Rule(
    code="allocator-churn",
    title="Memory is allocated anew in every step",
    turn=95,
    page="memory",
    owns="`allocator`: cudaMalloc, cudaFree, empty_cache; and gc.collect() in the same steps",
    change="the calls take no time, nor does collecting garbage; at best, the waits that they need disappear as well, and dispatch is as fast as with warm caches",
    fix={
        "pytorch": "Let the caching allocator keep its memory: remove torch.cuda.empty_cache() from the loop. If memory is short, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or fewer different shapes.",
        "jax": "Let XLA keep its memory: XLA_PYTHON_CLIENT_PREALLOCATE=true, and donate buffers (donate_argnums).",
        ANY: "Keep memory between steps instead of giving it back to the driver.",
    },
    find=find,
)
