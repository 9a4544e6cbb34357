"""A slower kernel beside XProf: what its pages list for two runs, and what our diff says first.

`python -m benchmarks.diff.beside_xprof [A.xplane.pb.gz B.xplane.pb.gz [KERNEL [FACTOR]]]` with XProf and TensorFlow installed. A and B are two recordings
of one job, or the same one; a kernel is made slower in B: the first that is not among the ten longest, unless told. XProf compares two runs by
showing its pages for both: what is not listed cannot be compared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import stepscope
from benchmarks.diff.plant_xplane import kernels_by_time, opened, slower_kernel
from benchmarks.recordings.archive import open_set

TOP = 10
# Two recordings of one job.
RECORDED = [f"jax_{name}.mended.xplane.pb.gz" for name in ("attention", "healthy_attention")]


def main() -> None:
    """Prints what each of them shows."""
    given = sys.argv[1:]
    sources = given[:2] or [str(open_set("diagnosis") / name) for name in RECORDED]
    kernel = given[2] if len(given) > 2 else kernels_by_time(opened(Path(sources[1])))[TOP][0]
    factor = float(given[3]) if len(given) > 3 else 3.0
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, source in zip("ab", sources, strict=True):
            space = opened(Path(source))
            if name == "b":
                slower_kernel(space, kernel, factor)
            place = [each for each, _ in kernels_by_time(space)].index(kernel) + 1
            print(f"{name.upper()}: {kernel} is number {place} of {len(kernels_by_time(space))} kernels")
            # A folder each: XProf keeps what it computed beside the file.
            files.append(Path(folder) / name / f"{name}.xplane.pb")
            files[-1].parent.mkdir()
            files[-1].write_bytes(space.SerializeToString())
            print(f"   XProf's overview: {overview(files[-1])}")
        found = stepscope.diff(*files)
    print(f"stepscope diff: {found.verdict}")
    for number, line in enumerate(found.lines[:3], 1):
        print(
            f"   {number}. {line.title} {line.difference / 1e3:+.1f} µs a step ({(line.relative or 0):+.0%})"
        )


def overview(path: Path) -> list[str]:
    """The ops that XProf's overview lists, at most ten, with their shares."""
    convert = import_module("xprof.convert.raw_to_tool_data")
    page, _ = convert.xspace_to_tool_data([str(path)], "overview_page", {"tqx": "out:json"})
    tables: list[dict[str, Any]] = json.loads(page)
    for table in tables:
        names = [column.get("id") for column in table.get("cols", [])]
        if "operation" in names:
            rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
            return [f"{row[names.index('operation')]} {row[0]:.1%}" for row in rows[:TOP]]
    return []


if __name__ == "__main__":
    main()
