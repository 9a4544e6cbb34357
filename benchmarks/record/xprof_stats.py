"""Keeps what XProf says of the profiles of the corpus, for tests of agreement. Wants xprof, and nothing of ours.

  python xprof_stats.py CORPUS OUT.json

XProf leaves caches beside the files it reads, so it is given copies.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xprof.convert import raw_to_tool_data

# Profile and tool: the columns that are kept.
KEPT = {
    ("h200/jax_gpu", "kernel_stats"): ("kernel_name", "occurrences", "total_duration_us"),
    ("tensorflow/custom_loop", "framework_op_stats"): ("type", "operation", "occurrences", "total_time", "total_self_time"),
    ("tensorflow/keras_callback", "framework_op_stats"): ("type", "operation", "occurrences", "total_time", "total_self_time"),
}  # fmt: skip


def rows(profile: Path, tool: str, columns: tuple[str, ...]) -> list[list[Any]]:
    """The tool's table, the wanted columns of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / profile.name
        shutil.copy(profile, copy)
        text = raw_to_tool_data.xspace_to_tool_data([str(copy)], tool, {"tqx": "out:json"})[0]
    found = json.loads(text)
    table = found[0] if isinstance(found, list) else found
    names = [column["id"] for column in table["cols"]]
    places = [names.index(name) for name in columns]
    return [[row["c"][place]["v"] for place in places] for row in table["rows"]]


def main() -> None:
    """All of them."""
    corpus, out = Path(sys.argv[1]), Path(sys.argv[2])
    told: dict[str, Any] = {
        "made_by": f"benchmarks/record/xprof_stats.py with xprof {version('xprof')}",
        "profiles": [],
    }
    for (name, tool), columns in KEPT.items():
        profile = next((corpus / name).rglob("*.xplane.pb"))
        found = rows(profile, tool, columns)
        told["profiles"].append({"profile": name, "tool": tool, "columns": columns, "rows": found})
    out.write_text(json.dumps(told, separators=(",", ":")).replace("],[", "],\n[") + "\n")


if __name__ == "__main__":
    main()
