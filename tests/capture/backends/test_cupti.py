"""Letting go of CUPTI: when it is asked for, and who decides."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import pytest

from stepscope.capture.backends.base import Options
from stepscope.capture.backends.cupti import VARIABLE, detach_from_now_on, stay_attached
from stepscope.capture.backends.torch import LightTorchBackend, TorchBackend


def fake_torch(cuda: str | None = "13.0", initialised: bool = True) -> Any:
    """A torch whose profiler notes what the variable says when a trace ends."""
    seen: list[str | None] = []
    profiler = types.SimpleNamespace(stop_trace=lambda: seen.append(os.environ.get(VARIABLE)))
    return types.SimpleNamespace(
        version=types.SimpleNamespace(cuda=cuda),
        cuda=types.SimpleNamespace(is_initialized=lambda: initialised),
        profiler=types.SimpleNamespace(record_function=None),
        made=profiler,
        seen=seen,
    )


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test sets is gone after it."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)


@pytest.mark.parametrize(
    ("cuda", "initialised", "expected"),
    [
        ("13.0", True, "1"),
        ("12.6", True, "1"),
        ("12.4", True, None),
        ("13.0", False, None),
        (None, True, None),
    ],
)
def test_asks_where_letting_go_is_safe(cuda: str | None, initialised: bool, expected: str | None) -> None:
    """Not before CUDA 12.6, and not in jobs without a GPU."""
    detach_from_now_on(fake_torch(cuda, initialised))
    assert os.environ.get(VARIABLE) == expected


@pytest.mark.parametrize("decided", ["0", "1"])
def test_leaves_the_decision_to_the_user(decided: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to PyTorch, which sets it to 0 for CUDA graphs of Inductor."""
    monkeypatch.setenv(VARIABLE, decided)
    detach_from_now_on(fake_torch())
    assert os.environ[VARIABLE] == decided


def stop(kind: type[TorchBackend], torch: Any, monkeypatch: pytest.MonkeyPatch, detach: bool) -> None:
    """End a window of this kind."""
    monkeypatch.setitem(sys.modules, "torch", torch)
    backend = kind(Options(detach=detach, sync=False))
    backend._profiler = torch.made
    backend._stop_recording()


def test_light_window_stays_attached_and_full_one_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a second cycle, too, after which it is asked for again."""
    torch = fake_torch()
    for kind in (LightTorchBackend, TorchBackend, LightTorchBackend, TorchBackend):
        stop(kind, torch, monkeypatch, detach=True)
    assert torch.seen == [None, "1", "0", "1"]


def test_windows_close_together_stay_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked for where the schedule leaves no room."""
    torch = fake_torch()
    stop(TorchBackend, torch, monkeypatch, detach=False)
    assert torch.seen == [None]


def test_what_was_asked_for_is_asked_for_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable outlives a profiler that fails."""
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(RuntimeError), stay_attached():
        assert os.environ[VARIABLE] == "0"
        raise RuntimeError
    assert os.environ[VARIABLE] == "1"
