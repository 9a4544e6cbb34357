"""Profiles with one thing wrong, and their reports with faults raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fuzz import made_torch
from benchmarks.fuzz.originals import write
from stepscope.profiles.load import load
from stepscope.reports.build import report
from stepscope.reports.failures import RAISE
from stepscope.reports.model.report import Report


def reported(folder: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Report:
    """The report of these files; a section that fails fails the test."""
    monkeypatch.setenv(RAISE, "1")
    write(files, folder)
    return report(load(folder, cache=False))


def torch_with(change: Callable[[list[dict[str, Any]]], None], **options: Any) -> dict[str, bytes]:
    """A made recording whose events were changed."""
    document = made_torch.document(**options)
    change(document["traceEvents"])
    return {"one.pt.trace.json": json.dumps(document).encode()}


def counts(found: Report) -> dict[str, int]:
    """The problems by code."""
    return {problem.code: problem.count for problem in found.problems}
