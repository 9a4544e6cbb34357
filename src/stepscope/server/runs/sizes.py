"""How many bytes a kept value takes, as well as can be told without walking all of it."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import polars as pl

_DEEPEST = 6


def size_of(value: Any, depth: int = 0) -> int:
    """Of frames, buffers and containers of them; other objects count as what Python says of them."""
    if isinstance(value, pl.DataFrame | pl.Series):
        return int(value.estimated_size())
    if isinstance(getattr(value, "nbytes", None), int):
        return int(value.nbytes)
    if isinstance(value, bytes | bytearray | str | array):
        return sys.getsizeof(value)
    if depth >= _DEEPEST:
        return sys.getsizeof(value)
    own = sys.getsizeof(value)
    if isinstance(value, Mapping):
        return own + sum(size_of(each, depth + 1) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return own + sum(size_of(each, depth + 1) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return own + sum(size_of(getattr(value, each.name, None), depth + 1) for each in fields(value))
    if isinstance(value, msgspec.Struct):
        return own + sum(size_of(getattr(value, name, None), depth + 1) for name in value.__struct_fields__)
    return own
