"""The host waits for the device, and the queue runs dry."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule


def find(case: Case) -> Finding | None:
    """Waits that empty the queue, and what it takes to fill it again."""
    return of_part(case, RULE, case.free(pl.col("part") == "sync"), case.plan.without_waits)


RULE: Rule[Case] = Rule(
    code="device-sync",
    title="The host waits for the device inside the step",
    turn=100,
    owns="`sync`",
    change="the host does not wait",
    fix={
        "pytorch": "Do not read values back in every step: drop .item(), .cpu(), print(loss) and torch.cuda.synchronize(), or do it every 100 steps; keep metrics on the device. Copies to the host: non_blocking=True into pinned memory.",
        "tensorflow": "Do not call .numpy() in every step; log every 100 steps.",
        "jax": "Do not call block_until_ready, float(x) or print(x) in every step; fetch metrics every 100 steps.",
        ANY: "Do not wait for the device in every step.",
    },
    find=find,
)
