"""What a window keeps of a GPU's memory, by stand-ins for tensors and arrays on one."""

from __future__ import annotations

import types
from typing import Any

from stepscope.capture.machine import kept


class _Tensor:
    """On a GPU, with a storage that so many have."""

    is_cuda = True

    def __init__(self, place: int, uses: int = 2, device: int = 0) -> None:
        self.device = types.SimpleNamespace(index=device)
        self.storage = types.SimpleNamespace(_cdata=uses, data_ptr=lambda: place, nbytes=lambda: 100)

    def untyped_storage(self) -> Any:
        return self.storage


class _Array:
    """Of JAX."""

    nbytes = 100

    def __init__(self, platform: str = "gpu") -> None:
        self.platform = platform

    def devices(self) -> set[Any]:
        return {type("Device", (), {"platform": self.platform, "id": 1})()}


TORCH = types.SimpleNamespace(_C=types.SimpleNamespace(_storage_Use_Count=lambda uses: uses))


def test_only_what_nobody_else_has_once_for_each_storage() -> None:
    assert kept.kept_bytes(TORCH, [_Tensor(1), _Tensor(1), _Tensor(2), _Tensor(3, device=1)]) == {
        0: 200,
        1: 100,
    }
    assert kept.kept_bytes(TORCH, [_Tensor(1, uses=3)]) == {}
    held = [[_Tensor(1)] * 9]
    assert kept.kept_bytes(TORCH, list(held[0])) == {}


def test_arrays_of_jax() -> None:
    held = _Array()
    assert kept.kept_by_jax([_Array(), _Array("cpu"), held, held]) == {1: 100}


def test_what_does_not_tell_is_nothing() -> None:
    assert kept.kept_bytes(None, [_Tensor(1)]) == {}
    assert kept.kept_bytes(TORCH, [3]) == {}


def test_rows_are_of_all_together() -> None:
    assert kept.rows({0: 5}, {1: 3, 0: 2}) == [{"device": 0, "bytes": 7}, {"device": 1, "bytes": 3}]
    assert kept.rows({}, {}) == []
