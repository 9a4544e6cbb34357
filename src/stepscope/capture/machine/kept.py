"""How much memory of a GPU is taken only because a window keeps arrays of the job until it closes: the job itself does not grow by it."""

from __future__ import annotations

import sys
from typing import Any

_OURS = 2  # uses of a storage of PyTorch: the tensor that we keep, and the storage as an object of Python
_REFERENCES = (
    4  # to an array that only we have: the caller's note of a call, the list, and two of what counts them
)


def kept_bytes(torch: Any, tensors: list[Any]) -> dict[int, int]:
    """By device, the bytes that the job itself has released; empty where this version of PyTorch does not count the uses of a storage."""
    found: dict[int, dict[int, int]] = {}
    try:
        for each in tensors:
            if getattr(each, "is_cuda", False) and sys.getrefcount(each) <= _REFERENCES:
                storage = each.untyped_storage()
                if torch._C._storage_Use_Count(storage._cdata) <= _OURS:
                    found.setdefault(each.device.index, {})[storage.data_ptr()] = storage.nbytes()
    except Exception:  # another version
        return {}
    return {device: sum(storages.values()) for device, storages in found.items()}


def kept_by_jax(arrays: list[Any]) -> dict[int, int]:
    """The same of arrays of JAX."""
    found: dict[int, int] = {}
    for each in arrays:
        # The list itself has it, not also a note.
        if hasattr(each, "devices") and sys.getrefcount(each) < _REFERENCES:
            [device] = each.devices()
            if device.platform == "gpu":
                found[device.id] = found.get(device.id, 0) + each.nbytes
    return found


def rows(*kept: dict[int, int]) -> list[dict[str, int]]:
    """device and bytes, of all together."""
    devices = sorted({device for each in kept for device in each})
    return [{"device": device, "bytes": sum(each.get(device, 0) for each in kept)} for device in devices]
