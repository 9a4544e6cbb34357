"""Recordings of the same jobs, several times each, as sides of a diff: each is read once in a session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import stepscope
from benchmarks.recordings.archive import open_recording
from stepscope.analysis.options import Options
from stepscope.diffs.data.samples import Side
from stepscope.diffs.side import read_side
from tests.shared.kept import made_once

FIXTURES = Path(__file__).parents[1] / "fixtures"
SUFFIX = ".pt.trace.json.gz"
# Jobs that were recorded again without a change, and the numbers of some recordings.
SAME = {"busy": (0, 1, 3), "small": (0, 1, 5), "wide": (0, 1), "conv": (0, 5, 6)}


def path_of(name: str) -> Path:
    """Of the set for diffs, or one of the jobs with a planted bottleneck."""
    return open_recording("diff" if name.split(".")[0] in SAME else "diagnosis", f"{name}{SUFFIX}")


def side(path: Path, step: tuple[int, int] | None = None) -> Side:
    """Any recording."""
    return read_side(stepscope.load(path), Options(None, step, 0))


@cache
def recorded(name: str) -> Side:
    """One of those above, by its name."""
    return made_once("sides", name, lambda: side(path_of(name)))
