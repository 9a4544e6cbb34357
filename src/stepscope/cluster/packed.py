"""Values as they are held by a place of work until they are asked for: bytes, a small part of the memory of the objects.

Written as Dask itself sends them between the same processes; only what `pack` made is ever opened, never bytes of a profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import compress, decompress


@dataclass(frozen=True)
class Packed:
    """What one of our own processes packed."""

    held: bytes


def pack(value: Any) -> Packed:
    """Fast rather than smallest: level 1 takes less time than writing did."""
    from distributed.protocol.serialize import serialize_bytes  # which cannot be imported on every system

    return Packed(compress(serialize_bytes(value), 1))


def open_packed(value: Packed) -> Any:
    """What was packed."""
    from distributed.protocol.serialize import deserialize_bytes

    return deserialize_bytes(decompress(value.held))


def apply(function: Callable[..., Any], *arguments: Any) -> Packed:
    """The function of the arguments, of which those that are packed, also in lists, are opened; the answer is packed, too."""
    return pack(function(*map(_opened, arguments)))


def _opened(value: Any) -> Any:
    if isinstance(value, Packed):
        return open_packed(value)
    return [_opened(each) for each in value] if isinstance(value, list) else value
