"""The device waits for the next batch."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.findings import (
    WORTH_A_FINDING,
)


def find(case: Case) -> Finding | None:
    """The loop waits for, or makes, its next batch."""
    return of_part(
        case,
        RULE,
        case.free(pl.col("part") == "input"),
        lambda: case.plan.with_host(pl.col("cause") == "input"),
        WORTH_A_FINDING,
    )


RULE: Rule[Case] = Rule(
    code="input-bound",
    title="The device waits for data",
    title_without_device="The step waits for data",
    turn=70,
    page="input",
    owns="`input`",
    change="the loader takes no time",
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
