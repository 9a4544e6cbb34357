"""The device waits for its infeed: the host does not deliver the next batch in time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.file_work import core_copies

_INFEED = r"^infeed\b"


def find(case: Case) -> Finding | None:
    """Time of the core in infeed instructions; replayed, the batch is there."""
    names = case.trace.events["name"].unique().drop_nulls()
    feeding = names.filter(names.cast(pl.String).str.contains(_INFEED))
    if feeding.is_empty():
        return None
    waits = core_copies(case.trace)
    waits = waits.filter(case.trace.events["name"].gather(waits).is_in(feeding.implode())).implode()
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(waits))
    return of_part(case, RULE, owned, lambda: case.plan.with_device(pl.col("event").is_in(waits)))


RULE: Rule[Case] = Rule(
    code="infeed",
    title="The device waits for its infeed",
    turn=152,
    page="input",
    owns="`copy` of infeed instructions",
    change="the batch is ready when the program needs it",
    fix={
        "tensorflow": "Make the next batch while the device computes: dataset.prefetch(tf.data.AUTOTUNE), parallel map and interleave, and fewer bytes a batch (uint8 images, bfloat16).",
        ANY: "Make the next batch while the device computes: prefetch in other threads or processes, and send fewer bytes a batch.",
    },
    find=find,
    needs_device=True,
)
