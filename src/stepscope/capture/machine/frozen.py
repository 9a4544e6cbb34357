"""Which weights an optimizer leaves as they are: parameter groups of PyTorch with a learning rate of zero, and JAX's zeros.

A profile has no values, and a learning rate is one. They are looked at once a window has closed, between two steps. Of PyTorch's
optimizers only Python's own numbers are read. A program of JAX is given its learning rates as arrays of one number: those that are zero
are noted by the keys of the dictionaries that hold them, unless a number of the same key is not. Nothing is imported or initialised here,
and nothing that fails reaches the job.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from stepscope.capture.machine.heap import objects_of
from stepscope.capture.machine.matrices import SWITCH

_MOST_NUMBERS = 4_096  # arrays of one number, such as losses that a job collects
_MOST_READ = 64  # each is a copy from the device
_MOST_NAMES = 32
_MOST_SHAPES = 4_096
_MOST_KEYS = 4_096  # of a dictionary: what has more is a table of something else
_FLOATS = ("float32", "float64", "bfloat16", "float16")


def look(frameworks: Iterable[str]) -> list[dict[str, Any]]:
    """Of PyTorch: framework, optimizer, frozen and trained (shapes). Of JAX: framework, name. Empty where nothing is frozen so."""
    if os.environ.get(SWITCH, "1") == "0":
        return []
    names, found = set(frameworks), []
    for name, of_framework in _LOOKS.items():
        module = sys.modules.get(name)
        if module is None or name not in names:
            continue
        try:
            found += of_framework(module)
        except Exception:  # another version, a device in error, too large a heap: the rest is worth having
            continue
    return found


def _of_torch(torch: Any) -> list[dict[str, Any]]:
    """By class, as profiles name them: of several optimizers of one class nothing is known."""
    kind = getattr(sys.modules.get("torch.optim"), "Optimizer", None)
    if kind is None:
        return []
    by_name: dict[str, list[Any]] = {}
    for each in objects_of(lambda found: issubclass(found, kind)):
        by_name.setdefault(type(each).__name__, []).append(each)
    rows = [_row(name, each[0]) for name, each in by_name.items() if len(each) == 1]
    return [row for row in rows if row is not None]


def _row(name: str, optimizer: Any) -> dict[str, Any] | None:
    frozen: list[list[int]] = []
    trained: list[list[int]] = []
    for group in optimizer.param_groups:
        shapes = [list(map(int, each.shape)) for each in group["params"] if each.requires_grad]
        (frozen if _is_frozen(group) else trained).extend(shapes)
    if not frozen or not trained or len(frozen) + len(trained) > _MOST_SHAPES:
        return None
    return {"framework": "torch", "optimizer": name, "frozen": frozen, "trained": trained}


def _is_frozen(group: dict[str, Any]) -> bool:
    """A rate that a schedule has set to zero, as in the first step of a warm-up, will be another one. A tensor is not asked."""
    return _is_zero(group.get("lr")) and ("initial_lr" not in group or _is_zero(group["initial_lr"]))


def _is_zero(rate: Any) -> bool:
    return type(rate) in (int, float) and rate == 0


def _of_jax(jax: Any) -> list[dict[str, Any]]:
    """The dictionaries that hold such an array are found first, so that few numbers have to be read."""
    if not getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
        return []
    numbers = {id(each): each for each in jax.live_arrays() if _is_number(each)}
    if not numbers or len(numbers) > _MOST_NUMBERS:
        return []
    held = _keys_of(numbers)
    with jax.transfer_guard("allow"):
        read = {number: float(numbers[number]) == 0 for number in list(held)[:_MOST_READ]}
    return [{"framework": "jax", "name": name} for name in _always_zero(held, read)[:_MOST_NAMES]]


def _always_zero(held: dict[int, list[str]], is_zero: dict[int, bool]) -> list[str]:
    """The names that only numbers have which are zero: two optimizers may each have a learning rate of one name."""
    names = dict.fromkeys(key for number, keys in held.items() if is_zero.get(number) for key in keys)
    others = {key for number, keys in held.items() if not is_zero.get(number) for key in keys}
    return [name for name in names if name not in others]


def _keys_of(numbers: dict[int, Any]) -> dict[int, list[str]]:
    """By the identity of each number: the names that dictionaries have for it."""
    held: dict[int, list[str]] = {}
    for holder in objects_of(lambda kind: kind is dict):
        if len(holder) > _MOST_KEYS or numbers.keys().isdisjoint(map(id, list(holder.values()))):
            continue
        for key, value in list(holder.items()):
            if type(key) is str and id(value) in numbers:
                held.setdefault(id(value), []).append(key)
    return held


def _is_number(array: Any) -> bool:
    if array.is_deleted() or array.ndim != 0 or str(array.dtype) not in _FLOATS:
        return False
    return bool(array.is_fully_addressable)


_LOOKS = {"torch": _of_torch, "jax": _of_jax}
