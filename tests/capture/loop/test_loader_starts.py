"""Starts of a DataLoader's worker processes are noted, and the loader is left as it is."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stepscope.capture.loop.loader_starts import LoaderStarts
from tests.capture.jobs import warm
from tests.capture.running import needs


def fake_loader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The part of torch.utils.data.dataloader that matters here."""

    class _MultiProcessingDataLoaderIter:
        def __init__(self, workers: int) -> None:
            if workers < 0:
                raise ValueError("no workers")
            self._num_workers = workers
            self.left = 2

        def _next_data(self) -> int:
            if not self.left:
                raise StopIteration
            self.left -= 1
            return self.left

    module = ModuleType("torch.utils.data.dataloader")
    module._MultiProcessingDataLoaderIter = _MultiProcessingDataLoaderIter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return _MultiProcessingDataLoaderIter


def test_each_start_is_noted_with_its_step_and_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = fake_loader(monkeypatch)
    step = 3
    starts = LoaderStarts(lambda: step)
    starts.open()
    first = kind(2)
    assert [row.keys() for row in starts.rows()] == [{"step", "workers", "start_ns"}]
    assert [first._next_data(), first._next_data()] == [1, 0]
    assert "_next_data" not in vars(first)
    with pytest.raises(StopIteration):
        first._next_data()
    step = 7
    second = kind(4)
    second._next_data()
    rows = starts.rows()
    assert [(row["step"], row["workers"]) for row in rows] == [(3, 2), (7, 4)]
    assert all(row["start_ns"] >= 0 and row["wait_ns"] >= 0 for row in rows)
    starts.close()
    kind(2)
    assert len(starts.rows()) == 2


def test_a_loader_that_is_not_used_ends_with_its_last_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = fake_loader(monkeypatch)
    starts = LoaderStarts(lambda: 0)
    starts.open()
    gc.disable()
    try:
        seen = weakref.ref(kind(1))
        assert seen() is None
    finally:
        gc.enable()
        starts.close()


def test_errors_of_the_loader_are_its_own_and_ours_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = fake_loader(monkeypatch)
    starts = LoaderStarts(lambda: 1 // 0)
    starts.open()
    with pytest.raises(ValueError, match="no workers"):
        kind(-1)
    mine = kind(1)
    assert mine._next_data() == 1
    starts.close()
    assert starts.rows() == []


@needs("torch")
def test_epochs_of_a_real_loader_are_noted(tmp_path: Path) -> None:
    found = warm.told("torch", "../loop/epochs_job", tmp_path)
    rows = found["loader_starts"]
    assert [row["step"] for row in rows][:4] == [0, 4, 8, 12]
    assert all(row["workers"] == 1 and row["start_ns"] > 0 and row["wait_ns"] > 0 for row in rows)
    assert found["problems"] == []
