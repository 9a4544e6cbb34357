"""Damage inside protobuf messages, any number of levels down, of which nothing is known but the wire format."""

from __future__ import annotations

import random
import re
from enum import Enum
from typing import NamedTuple

from stepscope.capture.files.protobuf import varint

_DEEPEST = 12
_FIXED_BYTES = {1: 8, 5: 4}
_LENGTH = 2
_EXTREMES = (0, 1, 127, 128, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_OVERLONG = (b"\x80" * 9 + b"\x00", b"\xff" * 10, b"\xff" * 20)
_TEXTS = (
    b"", b"0", b"-1", b"4294967296", b"9223372036854775807", b"18446744073709551616", b"9" * 40, b"\xff", b"\xed\xa0\x80", b"\0", b"/", b"//",
    b":", b"(", b"NaN", b"1e999", "\u0661".encode(), "\u202e".encode(), b" ", b"x" * 3000,
)  # fmt: skip
_FIELDS = (0, 1, 2, 3, 4, 5, 6, 7, 15, 1 << 28)


class Damage(Enum):
    """What happens to the field that is chosen."""

    length = "its length says more, or less, than there is"
    value = "it is a number, and an extreme one"
    overlong = "its number takes more bytes than it may"
    number = "it has the number of another field"
    kind = "it has the wire type of another field"
    twice = "it stands there many times"
    gone = "it is not there"
    last = "it stands behind all others"
    nested = "it encloses itself again and again"
    content = "its bytes are others"
    text = "its text says something else"


class Field(NamedTuple):
    """One field: its number and wire type, and what follows the tag and, if there is one, the length."""

    number: int
    kind: int
    content: bytes

    def written(self) -> bytes:
        """The field as it stands in a message."""
        length = varint(len(self.content)) if self.kind == _LENGTH else b""
        return varint(self.number << 3 | self.kind) + length + self.content


def rewritten(dice: random.Random, data: bytes, damage: Damage) -> bytes:
    """The message with one field damaged, here or deeper down; the lengths around it are right again."""
    return _rewritten(dice, data, damage, _DEEPEST)


def _rewritten(dice: random.Random, data: bytes, damage: Damage, depth: int) -> bytes:
    found = split(data)
    if not found:
        return data
    at = dice.randrange(len(found))
    before, chosen, after = found[:at], found[at], found[at + 1 :]
    if chosen.kind == _LENGTH and depth and dice.random() < 0.85 and split(chosen.content):
        inside = _rewritten(dice, chosen.content, damage, depth - 1)
        changed = chosen._replace(content=inside).written()
    else:
        changed = _damaged(dice, chosen, damage)
    pieces = [_all(before), changed, _all(after)]
    if damage is Damage.last:
        pieces[1:] = pieces[:0:-1]
    return b"".join(pieces)


def _all(found: list[Field]) -> bytes:
    return b"".join(field.written() for field in found)


def split(data: bytes) -> list[Field]:
    """The fields of a message, or nothing if these bytes are none."""
    found, at = [], 0
    while at < len(data):
        key, at = _number(data, at)
        kind, begin = key & 7, at
        if kind == 0:
            _, at = _number(data, at)
        elif kind == _LENGTH:
            size, begin = _number(data, at)
            at = begin + size
        else:
            at += _FIXED_BYTES.get(kind, len(data) + 1)
        if at > len(data) or not key >> 3:
            return []
        found.append(Field(key >> 3, kind, data[begin:at]))
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number and where it ends, which is beyond the data where it has no end."""
    value = 0
    for count, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, at + count + 1
    return value, len(data) + 1


def _damaged(dice: random.Random, field: Field, damage: Damage) -> bytes:
    tag, size = varint(field.number << 3), len(field.content)
    as_bytes = varint(field.number << 3 | _LENGTH)
    match damage:
        case Damage.length:
            wrong = dice.choice((0, max(0, size - 1), size + 1, size * 2 + 7, *_EXTREMES))
            return as_bytes + varint(wrong) + field.content
        case Damage.value:
            return tag + varint(dice.choice(_EXTREMES))
        case Damage.overlong:
            return tag + dice.choice(_OVERLONG)
        case Damage.number:
            return field._replace(number=dice.choice(_FIELDS)).written()
        case Damage.kind:
            return field._replace(kind=dice.randrange(8)).written()
        case Damage.twice:
            return field.written() * dice.choice((2, 50))
        case Damage.gone:
            return b""
        case Damage.nested:
            return _nested(field, dice.choice((2, 200)))
        case Damage.content:
            return as_bytes + varint(size) + dice.randbytes(size)
        case Damage.text:
            return field._replace(kind=_LENGTH, content=_other_text(dice, field.content)).written()
        case Damage.last:
            return field.written()


def _other_text(dice: random.Random, content: bytes) -> bytes:
    """With another number where one stands, or another text altogether."""
    numbers = list(re.finditer(rb"\d+", content))
    if numbers and dice.random() < 0.7:
        found = dice.choice(numbers)
        return content[: found.start()] + dice.choice(_TEXTS) + content[found.end() :]
    at = dice.randrange(len(content) + 1)
    return dice.choice((dice.choice(_TEXTS), content[:at] + dice.choice(_TEXTS) + content[at:]))


def _nested(field: Field, times: int) -> bytes:
    for _ in range(times):
        field = Field(field.number, _LENGTH, field.written())
    return field.written()
