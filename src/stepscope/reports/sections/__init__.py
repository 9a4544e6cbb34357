"""The sections of a report, one per file."""

from __future__ import annotations

from stepscope.reports.sections import (
    breakdown,
    collectives,
    coverage,
    critical_path,
    device,
    findings,
    hang,
    input_pipeline,
    kernels,
    memory,
    ops,
    phases,
    precision,
    problems,
    regions,
    roofline,
    serving,
    steps,
)
from stepscope.reports.sections.section import Section

SECTIONS: tuple[Section, ...] = (
    problems.SECTION,
    hang.SECTION,
    findings.SECTION,
    breakdown.SECTION,
    regions.SECTION,
    phases.SECTION,
    serving.SECTION,
    steps.SECTION,
    critical_path.SECTION,
    input_pipeline.SECTION,
    ops.SECTION,
    kernels.SECTION,
    precision.SECTION,
    roofline.SECTION,
    device.SECTION,
    memory.SECTION,
    collectives.SECTION,
    coverage.SECTION,
)
