"""Keeps what XProf says of the profiles of the corpus, for tests of agreement. Wants xprof, and nothing of ours.

  python xprof_stats.py CORPUS OUT.json
  python xprof_stats.py --tpu CORPUS_2 OUT.json

XProf leaves caches beside the files it reads, so it is given copies.
"""

from __future__ import annotations

import gzip
import json
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


TPU = "tpu/v6e_host_offload"
TPU_COLUMNS = (
    "hlo_op_name",
    "category",
    "occurrences",
    "total_self_time",
    "model_flop_rate",
    "measured_memory_bw",
)


def rows(profile: Path, tool: str, columns: tuple[str, ...]) -> list[list[Any]]:
    """The tool's table, the wanted columns of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / profile.name.removesuffix(".gz")
        packed = profile.suffix == ".gz"
        copy.write_bytes(gzip.decompress(profile.read_bytes()) if packed else profile.read_bytes())
        text = raw_to_tool_data.xspace_to_tool_data([str(copy)], tool, {"tqx": "out:json"})[0]
    found = json.loads(text)
    table = found[0] if isinstance(found, list) else found
    names = [column["id"] for column in table["cols"]]
    places = [names.index(name) for name in columns]
    return [[row["c"][place]["v"] for place in places] for row in table["rows"]]


def keep_tpu(corpus: Path, out: Path) -> None:
    """What XProf says of each instruction of a TPU."""
    found = {
        "made_by": f"benchmarks/record/xprof_stats.py --tpu with xprof {version('xprof')}",
        "profile": TPU,
        "tool": "hlo_stats",
        "columns": TPU_COLUMNS,
        "rows": rows(corpus / f"{TPU}.xplane.pb.gz", "hlo_stats", TPU_COLUMNS),
    }
    out.write_text(json.dumps(found, separators=(",", ":")).replace("],[", "],\n[") + "\n")


def main() -> None:
    """All of them."""
    if sys.argv[1] == "--tpu":
        keep_tpu(Path(sys.argv[2]), Path(sys.argv[3]))
        return
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
