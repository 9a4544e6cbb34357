"""What the tests want to know of a recording, as JSON."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

import stepscope

SECTIONS = ("steps", "breakdown", "ops", "coverage")


def facts(profiler: stepscope.Profiler) -> dict[str, Any]:
    """Figures of the report, and names and roles of what was annotated."""
    report = profiler.report(sections=SECTIONS)
    trace = stepscope.load(profiler.files[-1]).traces[0]
    named = trace.events.filter(pl.col("kind").is_in(["annotation", "op"]))
    ours = trace.ops.filter(pl.col("scope").cast(pl.String).str.contains("stepscope_wait"))["event"]
    outside = trace.events.filter(
        pl.col("step").is_null()
        & pl.col("kind").is_in(["annotation", "op"])
        & ~pl.col("id").is_in(ours.implode())
    )
    roles = named.filter(pl.col("role").is_not_null()).group_by("role").len()
    return {
        "files": [str(path) for path in profiler.files],
        "problems": [problem["code"] for problem in profiler.problems],
        "phases": profiler.phases,
        "framework": report.profile.framework,
        "source": report.steps.source,
        "steps": report.steps.count,
        "partial": report.steps.partial,
        "parts": {row.part: row.ns for row in report.breakdown},
        "unexplained_share_at_best": min(
            (row.parts.get("unexplained", 0) / row.duration_ns for row in report.steps.rows), default=1.0
        ),
        "ops": {row.name: [row.calls, row.host_total_ns, row.memory_bytes] for row in report.ops.rows},
        "runtime": report.coverage.runtime,
        "memory": report.coverage.memory,
        "gaps": [gap.reason for gap in report.coverage.gaps],
        "names": dict(named.group_by(pl.col("name").cast(pl.String)).len().iter_rows()),
        "roles": {str(role): count for role, count in roles.iter_rows()},
        "outside_steps": len(outside),
        "scopes": trace.ops["scope"].cast(pl.String).drop_nulls().unique().to_list(),
        "capture": {name: value for name, value in trace.info.capture.items() if name != "telemetry"},
        "telemetry": len((trace.info.capture.get("telemetry") or {}).get("samples", [])),
    }


def tell(**found: Any) -> None:
    """The last line of a job."""
    print(json.dumps(found, default=str), flush=True)  # noqa: T201
