"""Values of a file as JSON can hold them."""

from __future__ import annotations

import re
from typing import Any

_DEEPEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGERS = range(-(1 << 63), 1 << 63)


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
