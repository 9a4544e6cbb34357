"""Memory is allocated from the driver and given back in every step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.profiler import WARM_DISPATCH


def find(case: Case) -> Finding | None:
    """Calls of the driver's allocator that keep the device waiting."""
    return of_part(case, RULE, case.free(pl.col("part") == "allocator"), lambda: _cached(case))


def _cached(case: Case) -> Change:
    """The calls take no time; at most, the waits for the device that they need go as well, and ops find their memory at hand."""
    calls = pl.col("cause") == "allocator"
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
    owns="`allocator`: cudaMalloc, cudaFree, empty_cache",
    change="the calls take no time; at best, the waits that they need disappear as well, and dispatch is as fast as with warm caches",
    fix={
        "pytorch": "Let the caching allocator keep its memory: remove torch.cuda.empty_cache() from the loop. If memory is short, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or fewer different shapes.",
        "jax": "Let XLA keep its memory: XLA_PYTHON_CLIENT_PREALLOCATE=true, and donate buffers (donate_argnums).",
        ANY: "Keep memory between steps instead of giving it back to the driver.",
    },
    find=find,
)
