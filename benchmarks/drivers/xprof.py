"""XProf: from the file to its overview page."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from benchmarks.drivers.meter import report

convert = import_module("xprof.convert.raw_to_tool_data")


def load(path: str) -> dict[str, Any]:
    """The data of the overview page, as the plugin asks for it."""
    page, _ = convert.xspace_to_tool_data([path], "overview_page", {"tqx": "out:json"})
    tables = json.loads(page)
    return {"tables": len(tables), "bytes": len(page)}


if __name__ == "__main__":
    report(load)
