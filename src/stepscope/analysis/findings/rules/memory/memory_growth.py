"""Memory that grows from step to step."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.device_findings import MEMORY_GROWTH_BYTES, MEMORY_GROWTH_SHARE
from stepscope.units import size


def find(case: Case) -> Finding | None:
    """Memory that grows from step to step."""
    for one in case.memory:
        growth = one.growth_bytes_per_step or 0
        if one.device_kind != "cpu" and growth > max(
            MEMORY_GROWTH_BYTES, MEMORY_GROWTH_SHARE * (one.peak_bytes or 0)
        ):
            left = (one.capacity_bytes - (one.peak_bytes or 0)) // growth if one.capacity_bytes else None
            detail = f"Every step keeps {size(growth)} more on device {one.device}" + (
                f"; after about {left:,} more steps it is full." if left else "."
            )
            return RULE.finding(
                detail,
                RULE.fix_for(case.trace.info.framework),
                evidence={"growth_bytes_per_step": growth, "steps_left": left},
            )
    return None


RULE: Rule[Case] = Rule(
    code="memory-growth",
    title="Memory grows with every step",
    turn=20,
    class_="memory",
    page="memory",
    owns="memory that grows in every step",
    change="",
    fix={
        ANY: "Look for what keeps tensors from step to step: a list of losses that still hold their graph (append loss.item() or loss.detach()), or a cache without a bound.",
    },
    find=find,
)
