"""How an execution trace begins."""

from __future__ import annotations

import re

_HEADER = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"[^"]{0,100}"\s*,\s*"pid"\s*:\s*(\d{1,18})\b')


def process_of(head: bytes) -> int | None:
    """The process that an execution trace which begins so was recorded in; None for any other file."""
    found = _HEADER.match(head)
    return int(found[1]) if found else None
