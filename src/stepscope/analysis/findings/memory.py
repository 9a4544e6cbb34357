"""Findings about memory: a peak close to what the device has, and use that grows from step to step."""

from __future__ import annotations

from stepscope.analysis.findings.advice import advice
from stepscope.analysis.findings.finding import Case, Finding
from stepscope.registers.policy.findings import MEMORY_GROWTH_BYTES, MEMORY_GROWTH_SHARE, MEMORY_PRESSURE
from stepscope.units import size


def memory_pressure(case: Case) -> Finding | None:
    """The peak is close to what the device has."""
    for one in case.memory:
        top = max(one.peak_bytes or 0, one.reserved_peak or 0)
        if one.capacity_bytes and top > MEMORY_PRESSURE * one.capacity_bytes:
            detail = (
                f"{size(top)} of {size(one.capacity_bytes)} are taken at the peak on device {one.device}."
            )
            return Finding(
                "memory-pressure",
                "memory",
                "The device is almost out of memory",
                detail,
                advice("memory-pressure", case.trace.info.framework),
                {"peak_bytes": top, "capacity_bytes": one.capacity_bytes},
                round(top / one.capacity_bytes, 4),
            )
    return None


def memory_growth(case: Case) -> Finding | None:
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
            return Finding(
                "memory-growth",
                "memory",
                "Memory grows with every step",
                detail,
                advice("memory-growth", case.trace.info.framework),
                {"growth_bytes_per_step": growth, "steps_left": left},
            )
    return None
