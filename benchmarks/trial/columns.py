"""JSON traces as text without its numbers, and the numbers by what comes before them: that packs five times as well.

No package is needed, since the machine with the GPU may lack all of ours. Every byte comes back.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_NUMBERS = re.compile(rb"(\d+)")
_KEY = 12  # bytes before a number that choose its column
_DIFFERENCES = range(5, 16)  # digits of numbers that are kept as differences: times, ids, addresses


def split_numbers(data: bytes) -> bytes:
    """The texts between numbers, then the columns."""
    if b"\0" in data:
        return b"raw\n" + data
    tokens = _NUMBERS.split(data)
    texts, columns = tokens[::2], defaultdict[bytes, list[bytes]](list)
    for text, number in zip(texts, tokens[1::2], strict=False):
        columns[text[-_KEY:]].append(number)
    joined = b"\0".join(texts)
    written = b"\n".join(b" ".join(_differences(column)) for column in columns.values())
    return b"%d\n" % len(joined) + joined + written


def join_numbers(packed: bytes) -> bytes:
    """The JSON as it was."""
    head, rest = packed.split(b"\n", 1)
    if head == b"raw":
        return rest
    texts, written = rest[: int(head)].split(b"\0"), rest[int(head) :].split(b"\n")
    keys = dict.fromkeys(text[-_KEY:] for text in texts[:-1])
    columns = (
        {key: _sums(column.split(b" ")) for key, column in zip(keys, written, strict=True)} if keys else {}
    )
    parts = [part for text in texts[:-1] for part in (text, next(columns[text[-_KEY:]]))]
    return b"".join([*parts, texts[-1]])


def _differences(column: Iterable[bytes]) -> Iterator[bytes]:
    last = 0
    for number in column:
        if len(number) in _DIFFERENCES and not number.startswith(b"0"):
            value = int(number)
            yield b"%+d" % (value - last)
            last = value
        else:
            yield number


def _sums(column: Iterable[bytes]) -> Iterator[bytes]:
    last = 0
    for number in column:
        if number[:1] in (b"+", b"-"):
            last += int(number)
            yield b"%d" % last
        else:
            yield number
