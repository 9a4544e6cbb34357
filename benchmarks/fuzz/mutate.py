"""Damage to the bytes of a profile: blind, and such that only knows where numbers, lengths and records stand."""

from __future__ import annotations

import gzip
import random
import re
import struct
from collections.abc import Callable, Sequence

from benchmarks.fuzz.messages import Damage, rewritten
from stepscope.native.crc32c import crc32c

GZIP = b"\x1f\x8b"
# Longer repetitions only make a case slower.
_LONGEST = 1 << 16
_WORDS = (
    b"N/A", b"NaN", b"-inf", b"null", b"1e999999999", b"-9223372036854775809", b"18446744073709551616", b'"', b"\\", b'\\"',
    b"\\ud800", b"\\u0000", b"\xff\xfe", b"\xf0\x9f\x94", b"{", b"}", b"[", b"]", b",", b":", b"{}", b"[[[[", b"\0",
    b'"ph":"X"', b'"ph":"B"', b'"ph":"e"', b'"ph":"C"', b'"args":{', b'"traceEvents":[', b'"ts":-1', b'"id":',
    b"\xff" * 9 + b"\x01", b"\xff" * 11, b"\x80" * 10 + b"\x00", b"\xfa\xff\xff\xff\x07", b"\x0b", b"\x0c",
)  # fmt: skip
_NUMBERS = (
    b"0",
    b"-1",
    b"1e308",
    b"-1e-308",
    b"9223372036854775807",
    b"18446744073709551615",
    b"4e15",
    b"0.0005",
    b"1" * 400,
)

Mutation = Callable[[random.Random, bytes, bytes], bytes]


def mutated(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """The file with one to four things wrong, packed or plain; `other` is a second file to take bytes from."""
    if data[:2] == GZIP and dice.random() < 0.15:
        return _damaged(dice, data, other, BLIND)  # the packing itself
    plain, strange = _unpacked(data), _unpacked(other)
    kind = _kinds(plain)
    damaged = _damaged(dice, plain, strange, (*BLIND, *kind, *kind))
    return gzip.compress(damaged, 1, mtime=0) if dice.random() < 0.3 else damaged


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data) if data[:2] == GZIP else data


def _kinds(data: bytes) -> Sequence[Mutation]:
    if data.lstrip()[:1] in (b"{", b"["):
        return (_number, _value, _event_twice)
    return (_record,) if _records(data) else (_message,)


def _damaged(dice: random.Random, data: bytes, other: bytes, known: Sequence[Mutation]) -> bytes:
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        data = dice.choice(known)(dice, data, other) or b"\0"
    return data


def _region(dice: random.Random, data: bytes) -> tuple[int, int]:
    begin = dice.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(2 ** dice.uniform(0, 16)))


def _cut(dice: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _flip(dice: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 2, 8, 64)) if data else 0):
        changed[dice.randrange(len(data))] ^= dice.choice(
            (1, 2, 4, 8, 16, 32, 64, 128, dice.randrange(1, 256))
        )
    return bytes(changed)


def _splice(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, end = _region(dice, data)
    first, last = _region(dice, other)
    return data[:begin] + other[first:last] + data[begin if dice.random() < 0.5 else end :]


def _duplicate(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, end = _region(dice, data)
    times = dice.choice((2, 3, 100)) if end - begin < _LONGEST // 100 else 2
    return data[:begin] + data[begin:end] * times + data[end:]


def _remove(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, end = _region(dice, data)
    return data[:begin] + data[end:]


def _insert(dice: random.Random, data: bytes, other: bytes) -> bytes:
    at = dice.randrange(len(data) + 1)
    word = dice.choice(_WORDS)
    return data[:at] + word * dice.choice((1, 1, 1, 50, _LONGEST // len(word))) + data[at:]


def _noise(dice: random.Random, data: bytes, other: bytes) -> bytes:
    begin, end = _region(dice, data)
    return data[:begin] + dice.randbytes(end - begin) + data[end:]


BLIND: tuple[Mutation, ...] = (_cut, _flip, _flip, _splice, _duplicate, _remove, _insert, _noise)


def _number(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """Another number in the place of one."""
    return _replaced(dice, data, rb"-?\d[\d.eE+-]*", dice.choice(_NUMBERS))


def _value(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """Something else as the value of a member."""
    return _replaced(dice, data, rb'(?<=": )[^,}\]]+|(?<=":)[^,}\]\s]+', dice.choice(_WORDS + _NUMBERS))


def _event_twice(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """A whole line or event of either file once more, somewhere between two."""
    line = dice.choice(re.findall(rb"\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}", other[: 1 << 20]) or [b"{}"])
    return _replaced(dice, data, rb"(?<=\}),", b"," + line + b",")


def _replaced(dice: random.Random, data: bytes, pattern: bytes, new: bytes) -> bytes:
    found = re.compile(pattern).search(data, dice.randrange(len(data) + 1))
    return data[: found.start()] + new + data[found.end() :] if found else data


def _message(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """One field changed somewhere inside; the lengths around it are right again, so that it is reached."""
    return rewritten(dice, data, dice.choice(tuple(Damage)))


def _records(data: bytes) -> list[tuple[int, int]]:
    """Where the payload of each TFRecord stands."""
    found, at = [], 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data) or _checksum(data[at : at + 8]) != data[at + 8 : at + 12]:
            break
        found.append((at + 12, at + 12 + size))
        at += size + 16
    return found


def _record(dice: random.Random, data: bytes, other: bytes) -> bytes:
    """A field of a record's payload, with checksums that fit; or a length that does not."""
    found = _records(data)
    if not found:
        return data
    begin, end = dice.choice(found)
    if dice.random() < 0.2:
        size = struct.pack("<Q", dice.choice((0, end - begin + 1, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1)))
        return data[: begin - 12] + size + _checksum(size) + data[begin:]
    payload = rewritten(dice, data[begin:end], dice.choice(tuple(Damage)))
    size = struct.pack("<Q", len(payload))
    return data[: begin - 12] + size + _checksum(size) + payload + _checksum(payload) + data[end + 4 :]


def _checksum(data: bytes) -> bytes:
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)
