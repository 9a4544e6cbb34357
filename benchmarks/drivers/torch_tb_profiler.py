"""torch-tb-profiler: from the file to the data of its pages."""

from __future__ import annotations

import tempfile
import time
from importlib import import_module
from typing import Any

from benchmarks.drivers.meter import report

data = import_module("torch_tb_profiler.profiler.data")
generator = import_module("torch_tb_profiler.profiler.run_generator")


def load(path: str) -> dict[str, Any]:
    """Parse the trace and make the pages' data, as the plugin does before it shows a run."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        parsed = data.RunProfileData.parse("worker", None, path, cache)
        parse_seconds = time.perf_counter() - start
        generator.RunGenerator("worker", None, parsed).generate_run_profile()
    return {"parse_seconds": parse_seconds, "steps": len(parsed.steps_names)}


if __name__ == "__main__":
    report(load)
