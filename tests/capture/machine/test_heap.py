"""One pass over all objects that ends in time."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from stepscope.capture.machine import frozen, heap, matrices


class Unhashable(type):
    """Of classes that compare, hash and belong as they like."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("asked")


class Odd(metaclass=Unhashable):
    """Whoever asks it anything touches the job."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("asked")


class Wanted:
    """Looked for."""


class Derived(Wanted):
    """Looked for, too."""


def test_objects_by_their_own_type() -> None:
    kept = [Wanted(), Derived(), Odd(), [Odd()]]
    found = list(heap.objects_of(lambda kind: issubclass(kind, Wanted)))
    assert {id(each) for each in found} == {id(each) for each in kept[:2]}


def test_it_ends_where_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_AT_ONCE", 100)
    seen: list[Any] = []
    before = time.thread_time()
    with pytest.raises(heap.NotAll):
        seen.extend(heap.objects_of(lambda kind: True, seconds=0.0))
    assert time.thread_time() > before
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: 1 << 30)
    with pytest.raises(heap.NotAll):
        next(heap.objects_of(lambda kind: True))


def test_what_is_cut_short_reaches_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: 1 << 30)
    number = 0.5
    with pytest.raises(heap.NotAll):
        frozen._keys_of({id(number): number})
    torch: Any = type("torch", (), {"Tensor": list, "nn": type("nn", (), {"Parameter": dict})})
    assert matrices._tensors(torch) == []


def test_many_numbers_cost_one_pass() -> None:
    """Each number that is looked for once made each reference of the heap dearer."""
    rates = {f"group {at}": float(at) + 0.5 for at in range(2_000)}
    rates["cycle"] = [rates]  # type: ignore[assignment]  # so that the collector knows of it
    numbers = {id(value): value for key, value in rates.items() if key != "cycle"}
    before = time.thread_time()
    held = frozen._keys_of(numbers)
    assert time.thread_time() - before < 2
    assert held.keys() == numbers.keys()
    assert held[id(rates["group 7"])] == ["group 7"]
