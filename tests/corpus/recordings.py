"""Recordings of the corpora, each read once for all tests that look at it in one process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import digits
from typing import TypeVar

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.sample import of_each

T = TypeVar("T", str, Path)


@cache
def trace_of(path: Path) -> Trace:
    """The file as its reader leaves it."""
    return read(Source(str(path)))


@cache
def context_of(path: Path) -> RankContext:
    """The same as the report of this file alone sees it."""
    return RankContext(0, trace_of(path), Options(), alone=True)


def some(paths: Iterable[T], count: int = 2) -> list[T]:
    """Of the files of a folder that end alike, and so are of one writer, some; the soak takes all.

    Every run is in a whole report all the same: tests/corpus/test_report_size.py.
    """
    return of_each(paths, _kind, count, name=lambda path: Path(path).name)


def _kind(path: str | Path) -> tuple[str, str]:
    path = Path(path)
    return str(path.parent), path.name[path.name.find(".") :].translate(str.maketrans("", "", digits))
