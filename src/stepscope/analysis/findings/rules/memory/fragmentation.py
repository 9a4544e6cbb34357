"""The allocator holds memory that it cannot use."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.snapshot.culprit import describe_pieces, name_culprits
from stepscope.analysis.snapshot.explain import Explained
from stepscope.registers.policy.snapshot import FRAGMENTED


def find(case: Case) -> Finding | None:
    """Where much is free that cannot be used; what made a request fail first is a finding of its own."""
    for one in case.snapshots:
        pieces = describe_pieces(one)
        if is_first(one) or one.fragments.pinned_free < FRAGMENTED * one.fragments.reserved:
            continue
        return RULE.finding(
            pieces.text,
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


def is_first(one: Explained) -> bool:
    """Whether the error itself is explained by it."""
    culprits = name_culprits(one)
    return one.failed and bool(culprits) and culprits[0].cause == "fragmentation"


RULE: Rule[Case] = Rule(
    code="fragmentation",
    title="Free memory is in pieces that are too small",
    turn=7,
    class_="memory",
    page="memory",
    owns="a snapshot with much free memory in segments that are still in use",
    change="",
    fix={
        ANY: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and allocate what stays for long before what comes and goes."
    },
    find=find,
)
