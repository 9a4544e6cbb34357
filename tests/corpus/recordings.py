"""Recordings of the corpora, each read once for all tests that look at it in one process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace


@cache
def trace_of(path: Path) -> Trace:
    """The file as its reader leaves it."""
    return read(Source(str(path)))


@cache
def context_of(path: Path) -> RankContext:
    """The same as the report of this file alone sees it."""
    return RankContext(0, trace_of(path), Options(), alone=True)
