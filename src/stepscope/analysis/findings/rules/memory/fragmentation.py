"""The allocator holds memory that it cannot use."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.units import size


def find(case: Case) -> Finding | None:
    """Where a request failed although free pieces together would have sufficed."""
    for one in case.snapshots:
        pieces = next((each for each in name_culprits(one) if each.cause == "fragmentation"), None)
        if pieces is None or one.asked is None:
            continue
        return RULE.finding(
            f"{pieces.text} The request was for {size(one.asked)}.",
            RULE.fix[ANY],
            share=round(pieces.bytes / max(1, one.fragments.reserved), 4),
            where=pieces.where,
            evidence={
                "device": one.device,
                "free_bytes": one.fragments.cached,
                "largest_free_bytes": one.fragments.largest_free,
                "reserved_bytes": one.fragments.reserved,
                "pinned_segments": one.fragments.pinned_segments,
            },
        )
    return None


RULE: Rule[Case] = Rule(
    code="fragmentation",
    title="Free memory is in pieces that are too small",
    turn=7,
    class_="memory",
    page="memory",
    owns="a request that the free pieces of segments would hold only together",
    change="",
    fix={
        ANY: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and allocate what stays for long before what comes and goes."
    },
    find=find,
)
