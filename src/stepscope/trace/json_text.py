"""JSON text that writers got slightly wrong (stray bytes, N/A, inf or NaN), and values as JSON can hold them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_BARE_WORD = re.compile(
    rb"(?<=[:\[,])(\s*)(?:N/A|[+-]?(?:inf(?:inity)?|nan)|undefined|None)(?=\s*[,\]}])", re.IGNORECASE
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = 1
_DEEPEST = 100
_INTEGERS = range(-(1 << 63), 1 << 63)


def decoded(texts: list[tuple[bytes, int]]) -> tuple[list[str], int]:
    """The scanner's strings as text, and how many of them were broken."""
    broken = 0
    found = []
    for raw, flags in texts:
        try:
            text = json.loads(b'"%b"' % raw, strict=False) if flags & _ESCAPED else raw.decode()
        except ValueError:
            broken += 1
            text = raw.decode(errors="replace")
        # Half a surrogate pair is legal in JSON and illegal in UTF-8.
        if flags & _ESCAPED and not text.isascii() and _SURROGATE.search(text):
            broken += 1
            text = _SURROGATE.sub("\ufffd", text)
        found.append(text)
    return found, broken


def repaired_json(text: bytes) -> Any:
    """The value of a JSON text; bare words become null; None if it still cannot be read."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        found = json.loads(_BARE_WORD.sub(rb"\1null", text).decode(errors="replace"), strict=False)
        return plain(found)
    except (ValueError, RecursionError):
        return None


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON can hold it: whole numbers of 64 bits, text without halves of characters, no endless depth."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, int):
        return value if value in _INTEGERS else float("inf") if value.bit_length() > 1000 else float(value)
    if depth >= _DEEPEST:
        return None
    if isinstance(value, dict):
        return {str(plain(key)): plain(inner, depth + 1) for key, inner in value.items()}
    return [plain(inner, depth + 1) for inner in value] if isinstance(value, list) else value
