"""A line keeps memory from one pass to the next, as a memory snapshot shows."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.registers.policy.device_findings import MEMORY_GROWTH_BYTES


def find(case: Case) -> Finding | None:
    """Where nothing failed yet: an error is a finding of its own, which names the line."""
    for one in case.snapshots:
        kept = [each for each in name_culprits(one) if each.cause == "kept"]
        if one.failed or not kept or kept[0].bytes < MEMORY_GROWTH_BYTES:
            continue
        return RULE.finding(
            kept[0].text,
            one.changes[0].text if one.changes else RULE.fix[ANY],
            share=round(kept[0].bytes / max(1, one.allocated), 4),
            where=kept[0].where,
            evidence={"device": one.device, "bytes": kept[0].bytes},
        )
    return None


RULE: Rule[Case] = Rule(
    code="memory-kept",
    title="A line keeps memory from pass to pass",
    turn=22,
    class_="memory",
    page="memory",
    owns="a snapshot in which one line holds on to what it allocates",
    change="",
    fix={
        ANY: "Keep results without their graph (detach(), item()), or bound the list or dict that holds them."
    },
    find=find,
)
