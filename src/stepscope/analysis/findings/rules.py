"""What holds the step up, ranked by the time it would save: each finding owns its own slices of the account.

`speedup_max` is the bound from the account: all the time the finding owns, gone. `speedup` is the estimate from the
replay: the recorded steps played again, without the profiler's share, with the change applied.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.findings.batch import small_batch
from stepscope.analysis.findings.copies import detours, exposed_collective, exposed_copy
from stepscope.analysis.findings.finding import CLASSES, Case, Finding
from stepscope.analysis.findings.host import (
    device_sync,
    host_python,
    idle_unexplained,
    input_bound,
    launch_bound,
    optimizer_loop,
    recompilation,
    step_outliers,
)
from stepscope.analysis.findings.kernels import (
    fp32_matmul,
    layout_conversion,
    low_occupancy,
    unfused_attention,
)
from stepscope.analysis.findings.memory import memory_growth, memory_pressure

__all__ = ["CLASSES", "Case", "Finding", "findings"]

# In the order in which they claim slices: the special before the general.
RULES: tuple[Callable[[Case], Finding | list[Finding] | None], ...] = (
    memory_pressure,
    memory_growth,
    step_outliers,
    recompilation,
    input_bound,
    detours,
    device_sync,
    host_python,
    optimizer_loop,
    small_batch,
    launch_bound,
    exposed_copy,
    exposed_collective,
    unfused_attention,
    fp32_matmul,
    layout_conversion,
    low_occupancy,
    idle_unexplained,
)


def findings(case: Case) -> list[Finding]:
    """All findings worth telling: what threatens the run first, then by time saved."""
    if case.all_slices.is_empty():
        return []
    found: list[Finding] = []
    for rule in RULES:
        told = rule(case)
        found += told if isinstance(told, list) else [told] if told is not None else []
    return sorted(found, key=lambda one: (CLASSES.index(one.class_), -one.saves_ns_per_step, -one.share))
