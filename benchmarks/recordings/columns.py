"""Values of one kind side by side: what xz makes of a column is a fourth of what it makes of the rows."""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Any

import msgspec

_BYTES = 8


class Numbers(msgspec.Struct, array_like=True):
    """Whole numbers: `scale` was divided out, `deltas` says that differences were stored, `data` has lowest bytes first."""

    count: int
    scale: int
    deltas: bool
    data: bytes


class Texts(msgspec.Struct, array_like=True):
    """Each text once, in the order of first appearance, and which one is in which row."""

    texts: list[bytes]
    rows: Numbers


def pack_numbers(values: Sequence[int]) -> Numbers:
    """The smaller of the values themselves and their differences."""
    scale = math.gcd(*values) or 1
    plain = [value // scale for value in values]
    steps = [_wrap(after - before) for before, after in zip([0, *plain], plain, strict=False)]
    stored = [(deltas, _to_planes(each)) for deltas, each in ((False, plain), (True, steps))]
    deltas, data = min(stored, key=lambda each: len(zlib.compress(each[1], 6)))
    return Numbers(len(plain), scale, deltas, data)


def unpack_numbers(packed: Numbers) -> list[int]:
    """The values."""
    found = _from_planes(packed.data, packed.count)
    if packed.deltas:
        total = 0
        for place, step in enumerate(found):
            total = _wrap(total + step)
            found[place] = total
    return [value * packed.scale for value in found]


def pack_texts(values: Sequence[bytes]) -> Texts:
    """Equal values become one."""
    known: dict[bytes, int] = {}
    rows = [known.setdefault(value, len(known)) for value in values]
    return Texts(list(known), pack_numbers(rows))


def unpack_texts(packed: Texts) -> list[bytes]:
    """The values."""
    return [packed.texts[row] for row in unpack_numbers(packed.rows)]


def _wrap(value: int) -> int:
    """In 64 bits with a sign: what overflows in a difference overflows back in the sum."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _to_planes(values: Sequence[int]) -> bytes:
    """All lowest bytes, then all second ones …; small negative numbers stay small."""
    wide = array("Q", [value << 1 if value >= 0 else (-value << 1) - 1 for value in values])
    if sys.byteorder == "big":
        wide.byteswap()
    raw = wide.tobytes()
    planes = [raw[place::_BYTES] for place in range(_BYTES)]
    while planes and not any(planes[-1]):
        planes.pop()
    return b"".join(planes)


def _from_planes(data: bytes, count: int) -> list[int]:
    raw = bytearray(_BYTES * count)
    for place in range(len(data) // count if count else 0):
        raw[place::_BYTES] = data[place * count : (place + 1) * count]
    wide: Any = array("Q", bytes(raw))
    if sys.byteorder == "big":
        wide.byteswap()
    return [value >> 1 if value & 1 == 0 else -(value >> 1) - 1 for value in wide]
