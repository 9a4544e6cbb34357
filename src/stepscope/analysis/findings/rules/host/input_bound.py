"""The device waits for the next batch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import (
    MORE_WORKERS_LEAST,
    WORTH_A_FINDING,
)


def find(case: Case) -> Finding | None:
    """The loop waits for, or makes, its next batch."""
    return of_part(
        case, RULE, case.free(pl.col("part") == "input"), lambda: loaded_beside(case), WORTH_A_FINDING
    )


def loaded_beside(case: Case) -> Change:
    """Batches are made beside the step, by several workers: what they cannot make in the time of a step is waited for."""
    host = case.plan.host
    making = float(host.filter(pl.col("cause") == "input")["ns"].sum()) / max(1, len(case.lengths))
    without = case.plan.with_host(pl.col("cause") == "input")
    rest = without.step_ns()
    workers = max(1, _workers(case))
    # With workers already, a batch costs as much of theirs as all of them together have in a step.
    batch = making if workers == 1 else workers * (making + rest)
    fewest = max(MORE_WORKERS_LEAST, workers * 2)
    return Change(_waiting(case, batch / fewest - rest, making), without)


def _workers(case: Case) -> int:
    """How many processes make batches, as the capture noted it; 1 where none does or that is not known."""
    noted = case.trace.info.capture.get("input_workers")
    return noted if isinstance(noted, int) else 1


def _waiting(case: Case, ns: float, before: float) -> Plan:
    left = min(1.0, max(0.0, ns) / before) if before else 0.0
    return case.plan.with_host(pl.col("cause") == "input", left)


RULE: Rule[Case] = Rule(
    code="input-bound",
    title="The device waits for data",
    title_without_device="The step waits for data",
    turn=70,
    page="input",
    owns="`input`",
    change="batches are made beside the step, by six workers at least, or twice as many as there are; what they cannot make in time is waited for. At most, no batch is waited for",
    fix={
        "pytorch": "Load in worker processes: DataLoader(num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4). If workers are on already, move the slow stage to the GPU, or store data that is already decoded.",
        "tensorflow": "End the pipeline with .prefetch(tf.data.AUTOTUNE), use .map(…, num_parallel_calls=tf.data.AUTOTUNE), and .cache() what fits into memory.",
        "jax": "Make the next batch in a background thread or process (Grain, tf.data) and hand it over with jax.device_put before it is needed.",
        ANY: "Make the next batch in the background, while the step computes.",
    },
    fix_without_device={
        "pytorch": "Load in worker processes: DataLoader(num_workers=4, persistent_workers=True, prefetch_factor=4). If workers are on already, store data that is already decoded.",
        "jax": "Make the next batch in a background thread or process (Grain, tf.data).",
    },
    find=find,
)
