"""stepscope.load and the whole report, with all of its sections."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import stepscope
from benchmarks.drivers.meter import report
from benchmarks.drivers.ours import import_everything


def explain(path: str) -> dict[str, Any]:
    """The profile, its report and the report's web page."""
    found = stepscope.report(path)
    from stepscope.reports.render.html import as_html

    return {
        "steps": found.steps.count,
        "parts": len(found.breakdown),
        "html_bytes": len(as_html(found).encode()),
    }


if __name__ == "__main__":
    import_everything()
    for package in ("analysis", "reports"):
        module = import_module(f"stepscope.{package}")
        for inner in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
            import_module(inner.name)
    report(explain)
