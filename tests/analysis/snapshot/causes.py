"""Histories with a planted cause, and what is expected of them: the cause first, by a line of it, with its bytes within 2 %."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import explain
from stepscope.formats import read
from stepscope.formats.source import Source
from tests.builders.snapshots import Job


class Truth(NamedTuple):
    """What was planted."""

    cause: str
    lines: set[int]
    bytes: int


Cause = Callable[[], tuple[Job, Truth]]


def list_causes(module: dict[str, Any]) -> list[Cause]:
    """The functions of a module that plant one."""
    planted = "tuple[Job, Truth]"
    return [each for each in module.values() if getattr(each, "__annotations__", {}).get("return") == planted]


def check(job: Job, truth: Truth, folder: Path) -> None:
    """Explain the job and compare."""
    (found,) = explain(read(Source(job.write(folder / "snapshot.pickle"))))
    first = name_culprits(found)[0]
    assert first.cause == truth.cause
    assert first.where[0].line in truth.lines
    assert first.bytes == pytest.approx(truth.bytes, rel=0.02)
