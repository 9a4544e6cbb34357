"""What a recording of PyTorch leaves in memory: nothing that a collection of garbage would have to free inside a step."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.backends.base import Options
from stepscope.capture.backends.torch import TorchBackend

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """As in the steps right after a window."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left_over() -> list[Any]:
    """The profilers of autograd that hold results."""
    return [each for each in gc.get_objects() if isinstance(each, torch.autograd.profiler.profile)]


def test_results_go_when_they_are_written(tmp_path: Path) -> None:
    """torch.profiler.profile refers to itself: 20,000 ops were freed in a later step, which took 0.6 s for it."""
    backend = TorchBackend(Options(device=False))
    backend.warm_up(tmp_path)
    backend.start(tmp_path)
    torch.ones(3).sum()
    backend.stop()
    assert left_over()
    assert backend.save()
    assert not left_over()


def test_results_go_when_they_are_given_up(tmp_path: Path) -> None:
    """Another profiler begins, or something has failed."""
    backend = TorchBackend(Options(device=False))
    backend.warm_up(tmp_path)
    backend.start(tmp_path)
    torch.ones(3).sum()
    backend.abandon()
    assert not left_over()
