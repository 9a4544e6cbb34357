"""Holistic Trace Analysis: from the file to its breakdown of time."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.drivers.meter import report

analysis = import_module("hta.trace_analysis")


def load(path: str) -> dict[str, Any]:
    """Read one rank and ask the first question of its manual."""
    found = analysis.TraceAnalysis(trace_files={0: path}, trace_dir="/")
    return {"rows": len(found.get_temporal_breakdown(visualize=False))}


if __name__ == "__main__":
    report(load)
