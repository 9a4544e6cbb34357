"""XProf: from the file to the first view of its trace viewer, as the plugin asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.drivers.meter import report

convert = import_module("xprof.convert.raw_to_tool_data")
# What the plugin sends when the page is opened.
OPTIONS = {"resolution": "8000", "full_dma": False}


def load(path: str) -> dict[str, Any]:
    """The events of the whole trace at the resolution of a screen."""
    data, _ = convert.xspace_to_tool_data(
        [path], "trace_viewer@", {"tqx": "out:json", "trace_viewer_options": OPTIONS, "hosts": []}
    )
    return {"bytes": len(data or b"")}


if __name__ == "__main__":
    report(load)
