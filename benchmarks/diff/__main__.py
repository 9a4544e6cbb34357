"""How often the diff is right: `python -m benchmarks.diff FOLDER` over the recordings of `benchmarks.diff.record`.

Every pair of recordings of one job must not differ; a changed job must have its change in the first line, against every recording of the
unchanged one; so must an op that is slower by 10 %, planted into the next recording.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import polars as pl

import stepscope
from benchmarks.diff.plant import slower_op
from stepscope.across.diff_samples import Side
from stepscope.report.diff_build import diff_of
from stepscope.report.diff_side import side_of
from stepscope.report.options import Options

SUFFIX = ".pt.trace.json.gz"
FIRST_LINE = {"batch": "batch", "fp32": "precision", "sync": "sync"}
LARGEST_OPS = 3
LEAST = 0.002  # of the step: what the diff calls too small to matter

Sides = dict[tuple[str, str, str], tuple[Path, Side]]


def main() -> None:
    """Prints each miss, then the counts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    sides = {_parts(path): (path, _side(path)) for path in sorted(folder.glob(f"*{SUFFIX}"))}
    found = {
        name: _counted(name, results)
        for name, results in (
            ("same", same(sides)),
            ("changed", changed(sides)),
            ("slower op", slower_ops(sides)),
        )
    }
    print(json.dumps(found, indent=2))


def same(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Whether nothing differs, for every pair of recordings of a job."""
    unchanged = sorted(key for key in sides if key[1] == "none")
    for a, b in combinations(unchanged, 2):
        if a[0] == b[0]:
            found = diff_of(sides[a][1], sides[b][1])
            yield f"{'.'.join(a)} {'.'.join(b)} {[line.title for line in found.lines]}", not found.significant


def changed(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Whether the change is the first line, against every recording of the unchanged job."""
    for key in sorted(sides):
        for base in sorted(sides):
            if key[1] in FIRST_LINE and base[:2] == (key[0], "none"):
                lines = diff_of(sides[base][1], sides[key][1]).lines
                is_first = bool(lines) and lines[0].kind == FIRST_LINE[key[1]]
                yield f"{'.'.join(base)} {'.'.join(key)} {[line.title for line in lines[:2]]}", is_first


def slower_ops(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Whether an op slower by 10 % is the first line: the largest ops of each job, planted into its second recording."""
    for job in sorted({key[0] for key in sides}):
        first, second = (sides.get((job, "none", number)) for number in "01")
        if first is None or second is None:
            continue
        step = second[1].samples.cells["ns"].mean()
        for op in _largest(second[1]):
            with tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / f"planted{SUFFIX}"
                added = 1e3 * slower_op(second[0], target, op, 1.1) / len(second[1].samples.cells)
                lines = diff_of(first[1], _side(target)).lines
            if isinstance(step, float) and added >= 2 * LEAST * step:
                yield (
                    f"{job} {op} +{added / step:.2%} {[line.title for line in lines[:2]]}",
                    bool(lines) and lines[0].name == op,
                )


def _largest(side: Side) -> list[str]:
    by_name = (
        side.samples.ops.group_by("name")
        .agg(pl.col("device_ns").sum())
        .sort("device_ns", "name", descending=[True, False])
    )
    return by_name["name"].head(LARGEST_OPS).to_list()


def _parts(path: Path) -> tuple[str, str, str]:
    job, change, number = path.name.removesuffix(SUFFIX).split(".")
    return job, change, number


def _side(path: Path) -> Side:
    return side_of(stepscope.load(path, cache=False), Options(limit=0))


def _counted(name: str, results: Iterator[tuple[str, bool]]) -> dict[str, int]:
    right = total = 0
    for words, is_right in results:
        total += 1
        right += is_right
        if not is_right:
            print(f"{name}: {words}", flush=True)
    return {"right": right, "of": total}


if __name__ == "__main__":
    main()
