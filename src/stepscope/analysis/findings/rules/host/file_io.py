"""Files are read or written inside the step: checkpoints, logs, results."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.mostly import mostly_in
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.functions import calls_of
from stepscope.registers.policy.findings import WORTH_A_FINDING

_OF_CALL = ("io", "copy", "sync", "dispatch", "python", "device_gap")


def find(case: Case) -> Finding | None:
    """The whole calls: what is written has to be copied, and waited for."""
    files = case.free(pl.col("part") == "io")
    if files.is_empty() or case.is_of_one_step(files):
        return None
    calls = calls_of(case.trace, files["named_by"])
    others = case.free(pl.col("part").is_in(_OF_CALL))
    owned = pl.concat([files, others.filter(calls.owns(others))]).unique("slice", maintain_order=True)
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    mostly = mostly_in(case.top_names(files), case.per_step(files))
    in_calls = pl.lit(calls.inside.gather(case.plan.host["event"]).fill_null(False))
    smallest = case.plan.with_host(pl.col("cause") == "io")
    largest = (
        smallest.with_host(in_calls)
        .with_device(pl.col("event").is_in(calls.copies.implode()))
        .without_waits(pl.col("event").is_in(calls.waits.implode()))
    )
    change = Change(smallest, with_warm_caches(largest, case.plan))
    found = timed(case, RULE, owned, change, f"{case.of_step(ns)} goes into files{mostly}.")
    found.where = case.places(files)
    return found


RULE: Rule[Case] = Rule(
    code="file-io",
    title="The device waits for files",
    title_without_device="The step waits for files",
    turn=105,
    owns="`io`, with the copies and waits of the same calls, unless it occurred in one step only",
    change="files take no time; at best, nor do the copies and waits of the calls that write them",
    fix={
        "pytorch": "Write less often, and in the background: torch.save every few thousand steps, torch.distributed.checkpoint.async_save, or a copy of the state that another thread writes; log every 100 steps. Read ahead, in the workers of a DataLoader.",
        "jax": "Write less often, and in the background: an asynchronous checkpointer (Orbax), and logs every 100 steps. Read the next batch while the device computes.",
        ANY: "Write less often, and in the background; read ahead.",
    },
    find=find,
)
