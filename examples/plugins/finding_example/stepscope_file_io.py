"""A finding for stepscope: the device waits while the host reads or writes files."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule


def find(case: Case) -> Finding | None:
    """Owns the part `io` of the account; replayed, the files take no time."""
    owned = case.free(pl.col("part") == "io")
    return of_part(case, RULE, owned, lambda: case.plan.with_host(pl.col("cause") == "io"))


RULE: Rule[Case] = Rule(
    code="file-io",
    title="The device waits for files",
    turn=115,  # after host-python, before optimizer-loop
    owns="`io`",
    change="files take no time",
    fix={
        "pytorch": "Save in the background: torch.distributed.checkpoint.async_save.",
        ANY: "Write files from a thread, or less often.",
    },
    find=find,
)
