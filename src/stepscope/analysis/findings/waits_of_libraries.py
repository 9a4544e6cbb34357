"""Waits for the device inside of communication: a library of distributed training waits there, not code that reads a value."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.mostly import mostly_in
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.host.causes import host_codes
from stepscope.native.host.lineage import USER
from stepscope.registers.policy.findings import MAJORITY, TOP_NAMES
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.units import percent

# TorchRec's awaitables, ops and annotations of collectives, and the Python of such libraries.
_EXCHANGES = (
    r"Awaitable\b.* wait|^c10d::|^(nccl|gloo|ucc|mpi):|^record_param_comms$|(^|/)torchrec/|(^|/)torch/distributed/"
    r"|(^|[^A-Za-z])(?i:all_?to_?all|all_?gather|all_?reduce|reduce_?scatter)"
)
WAITS_INSIDE = "waits_inside"  # in the evidence
_UNKNOWN = " How much of that is waiting for other ranks, the waits of one rank do not show."
_FIX = "Exchange ahead, so that what the library waits for, such as the sizes of the next batch, arrives while this one is computed (TorchRec: TrainPipelineSparseDist), or give it sizes that are known (input and output splits)."


def name_library(case: Case, found: Finding, waits: pl.DataFrame) -> None:
    """Say so where most of the waits are such, and advise what helps there, without a promise: ranks also wait for each other there."""
    inside = _exchanging(case, waits)
    total, mine = int(waits["ns"].sum()), int(inside["ns"].sum())
    if mine <= MAJORITY * total:
        return
    summed = inside.group_by("name").agg(pl.col("ns").sum()).sort("ns", "name", descending=[True, False])
    names = [{"name": name.strip("# "), "ns_per_step": ns} for name, ns in summed.head(TOP_NAMES).iter_rows()]
    found.detail = (
        f"{case.of_step(case.per_step(waits))} goes to waits for the device. {percent(mine / total)} of that is inside of an exchange "
        f"between ranks{mostly_in(names, mine)}: a library of distributed training waits there.{_UNKNOWN}"
    )
    found.evidence = {**found.evidence, WAITS_INSIDE: names[0]["name"]}
    found.evidence.pop("follows", None)
    found.fix = _FIX
    case.changes.pop(found.code, None)
    withdraw(found)


def _exchanging(case: Case, waits: pl.DataFrame) -> pl.DataFrame:
    """ns, name of the exchange, of those waits that are in one without code of the user's own in between."""
    events = case.trace.events
    exchanges = is_named(events, _EXCHANGES) & events["kind"].is_in(["op", "annotation", "python", "span"])
    known = exchanges | ((events["kind"] == "python") & (host_codes(case.trace) == USER))
    nearest = pl.select(pl.when(known).then(events["id"]).otherwise(ancestors(events, known))).to_series()
    named = waits.select("ns", "named_by").drop_nulls()
    rows = named.select("ns", place=nearest.gather(named["named_by"])).drop_nulls()
    rows = rows.filter(exchanges.gather(rows["place"]))
    return rows.select("ns", name=events["name"].gather(rows["place"]).cast(pl.String))
