"""How often the diff is right: `python -m benchmarks.diff [FOLDER …]`, by default over the recordings of tests/fixtures/diff.

A folder has recordings of `benchmarks.diff.record` (files) or `benchmarks.diff.record_cpu` (folders), named JOB.CHANGE.NUMBER. Every pair of recordings
of one job must not differ; a changed job must have its change in the first line, against every recording of the unchanged one; so must an op
that is slower by 10 %, planted into another recording of the job, or into the same one where there is no other. STEPSCOPE_CORPUS adds the profiles there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import polars as pl

import stepscope
from benchmarks.diff.plant import slower_op
from benchmarks.diff.plant_samples import slower_in_samples
from benchmarks.promises import Promise
from benchmarks.recordings.archive import FIXTURES, open_set
from stepscope.analysis.options import Options
from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.model import Diff
from stepscope.diffs.data.samples import Side
from stepscope.diffs.side import read_side

SUFFIX = ".pt.trace.json.gz"
FIRST_LINE = {"batch": "batch", "fp32": "precision", "sync": "sync"}
LARGEST_OPS = 3
LEAST = 0.002  # of the step: what the diff calls too small to matter
FEWEST_STEPS = 3
FACTOR = 1.1

Sides = dict[tuple[str, str, str], tuple[Path, Side]]
Results = Iterable[tuple[str, bool]]


def main() -> int:
    """Prints each miss, then the promises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    sides = {
        _parts(path): (path, side_at(path))
        for folder in parser.parse_args().folders or [open_set("diff")]
        for path in sorted(folder.iterdir())
        if path.name.count(".") >= 2
    }
    kinds: tuple[tuple[str, Results, float], ...] = (
        ("two recordings of the same job do not differ", same(sides), 0.95),
        ("a changed batch, precision or wait is the first line", changed(sides), 0.95),
        ("an op slower by 10 % in another recording is the first line", slower_ops(sides), 0.95),
        ("an op slower by 10 % in the same recording is the first line", slower_alone(_single()), 0.95),
    )
    promises = [each for name, results, least in kinds if (each := _promise(name, results, least))]
    for promise in promises:
        print(promise.line(), flush=True)
    return int(not all(promise.kept for promise in promises))


def same(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Whether nothing differs, for every pair of recordings of a job."""
    unchanged = sorted(key for key in sides if key[1] == "none")
    for a, b in combinations(unchanged, 2):
        if a[0] == b[0]:
            found = diff_sides(sides[a][1], sides[b][1])
            yield f"{'.'.join(a)} {'.'.join(b)} {_lines(found)}", not found.significant


def changed(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Whether the change is the first line, against every recording of the unchanged job."""
    for key in sorted(sides):
        for base in sorted(sides):
            if key[1] in FIRST_LINE and base[:2] == (key[0], "none"):
                found = diff_sides(sides[base][1], sides[key][1])
                is_first = bool(found.lines) and found.lines[0].kind == FIRST_LINE[key[1]]
                yield f"{'.'.join(base)} {'.'.join(key)} {_lines(found)}", is_first


def slower_ops(sides: Sides) -> Iterator[tuple[str, bool]]:
    """Of each job with a device, its largest ops: planted into the file of another recording, kernel by kernel."""
    for job in sorted({key[0] for key in sides}):
        recordings = [sides[key] for key in sorted(sides) if key[:2] == (job, "none")][:2]
        if len(recordings) < 2 or not recordings[1][0].name.endswith(SUFFIX):
            continue
        (_, first), (path, second) = recordings
        for op, _ in largest(second, "device_ns"):
            with tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / f"planted{SUFFIX}"
                added = 1e3 * slower_op(path, target, op, FACTOR) / len(second.samples.cells)
                found = diff_sides(first, side_at(target))
            if added >= 2 * LEAST * _step(second):
                yield f"{job} {op} +{added / _step(second):.2%} {_lines(found)}", _names(found, op)


def slower_alone(paths: Iterable[Path]) -> Iterator[tuple[str, bool]]:
    """Of each profile with steps, its largest ops: as slow in a copy of what it recorded, the step longer by as much."""
    for path in paths:
        side = side_at(path)
        measure = "device_ns" if side.samples.kernels["ns"].sum() else "host_ns"
        if len(side.samples.cells) < FEWEST_STEPS:
            continue
        for op, ns in largest(side, measure):
            added = (FACTOR - 1) * ns
            if added >= 2 * LEAST * _step(side):
                found = diff_sides(side, slower_in_samples(side, op, FACTOR, measure))
                yield f"{path.name} {op} +{added / _step(side):.2%} {_lines(found)}", _names(found, op)


def _single() -> list[Path]:
    """Our own recordings of PyTorch, JAX and TensorFlow, and those of the corpus."""
    found = sorted(open_set("diagnosis").glob("*healthy*"))
    found += [FIXTURES / "jax", FIXTURES / "tensorflow"]
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    if corpus:
        found += sorted(Path(corpus).glob("h200/*.gz")) + sorted(Path(corpus).glob("tensorflow/*_*"))
    return found


def largest(side: Side, measure: str) -> list[tuple[str, float]]:
    """The ops that take most, with their time a step."""
    by_name = (
        side.samples.ops.group_by("name")
        .agg(ns=pl.col(measure).sum() / len(side.samples.cells))
        .sort("ns", "name", descending=[True, False])
    )
    return [(name, ns) for name, ns in by_name.head(LARGEST_OPS).iter_rows()]


def side_at(path: Path) -> Side:
    """A recording as the diff wants it."""
    return read_side(stepscope.load(path, cache=False), Options(limit=0))


def _step(side: Side) -> float:
    return float(side.samples.cells["ns"].sum()) / len(side.samples.cells)


def _names(found: Diff, op: str) -> bool:
    return bool(found.lines) and found.lines[0].name == op


def _lines(found: Diff) -> list[str]:
    return [line.title for line in found.lines[:2]]


def _parts(path: Path) -> tuple[str, str, str]:
    job, change, number = path.name.removesuffix(SUFFIX).split(".")
    return job, change, number


def _promise(name: str, results: Results, least: float) -> Promise | None:
    right = total = 0
    for words, is_right in results:
        total += 1
        right += is_right
        if not is_right:
            print(f"miss: {name}: {words}", flush=True)
    if not total:
        return None
    return Promise(f"{name} ({right} of {total})", right / total, least, at_least=True, unit="")


if __name__ == "__main__":
    sys.exit(main())
