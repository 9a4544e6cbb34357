"""The sections of a report, one per file."""

from __future__ import annotations

from stepscope.report.section import Section
from stepscope.report.sections import breakdown, coverage, input_pipeline, memory, ops, steps

SECTIONS: tuple[Section, ...] = (
    steps.SECTION,
    breakdown.SECTION,
    input_pipeline.SECTION,
    ops.SECTION,
    memory.SECTION,
    coverage.SECTION,
)
