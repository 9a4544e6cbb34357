"""The doctor asks Pythons in processes of their own, which take long to answer on a busy machine."""

from __future__ import annotations

import pytest

from stepscope.doctor.environment import survey
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "PROBE_SECONDS", PATIENCE_S)
