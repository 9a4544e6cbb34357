"""In tests, a section that fails is a failed test."""

from __future__ import annotations

import pytest

from stepscope.reports.failures import RAISE


@pytest.fixture(autouse=True)
def _faults_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RAISE, "1")
