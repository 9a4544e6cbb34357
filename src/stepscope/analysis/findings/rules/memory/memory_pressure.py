"""The peak is close to what the device has."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import workload
from stepscope.registers.policy.device_findings import MEMORY_PRESSURE
from stepscope.units import size


def find(case: Case) -> Finding | None:
    """The peak is close to what the device has, unless a server filled it on purpose: with a pool for keys and values, at its start."""
    for one in case.memory:
        top = max(one.peak_bytes or 0, one.reserved_peak or 0)
        if one.capacity_bytes and top > MEMORY_PRESSURE * one.capacity_bytes:
            if workload(case.trace).engine is not None:
                return None
            detail = (
                f"{size(top)} of {size(one.capacity_bytes)} are taken at the peak on device {one.device}."
            )
            return RULE.finding(
                detail,
                RULE.fix_for(case.trace.info.framework),
                evidence={"peak_bytes": top, "capacity_bytes": one.capacity_bytes},
                share=round(top / one.capacity_bytes, 4),
            )
    return None


RULE: Rule[Case] = Rule(
    code="memory-pressure",
    title="The device is almost out of memory",
    turn=10,
    class_="memory",
    page="memory",
    owns="the peak is above 90 % of the device; not under a serving engine (vLLM, SGLang, TensorRT-LLM), which reserves most of it on purpose",
    change="",
    fix={
        "pytorch": "Leave room: gradient checkpointing, bf16, a smaller batch, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation.",
        ANY: "Leave room: gradient checkpointing, lower precision or a smaller batch.",
    },
    find=find,
)
