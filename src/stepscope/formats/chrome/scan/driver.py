"""Drives one scanner: on until there is something to report, and past what cannot be read."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

from stepscope.formats.chrome.scan.columns import Gathering
from stepscope.formats.chrome.scan.problems import oversized
from stepscope.native.json import events as native
from stepscope.trace.json_text import repaired_json
from stepscope.trace.problems import Problems

# Decoded, such a value may take ten times the memory.
LARGEST_HEADER_BYTES = 1 << 26
SALVAGES = 100

Bytes = mmap.mmap | bytes | bytearray
Header = dict[str, Any]


def member(key: str, text: memoryview | bytes, problems: Problems) -> Any:
    """The value of a member beside the events; one that is too large for a header is left as nothing."""
    if len(text) > LARGEST_HEADER_BYTES:
        problems.add(oversized(key, LARGEST_HEADER_BYTES))
        return None
    return repaired_json(bytes(text))


def _nothing() -> None:
    pass


def run(
    scanner: native.Scanner,
    window: Bytes,
    header: Header,
    gathering: Gathering,
    tell: Callable[[], None] = _nothing,
) -> int:
    """Run until the window, the section or the document ends, and keep the members of the header."""
    while True:
        result = scanner.run()
        if result == native.HEADER:
            lo, hi = scanner.key_span()
            key = bytes(window[lo:hi]).decode(errors="replace")
            lo, hi = scanner.value_span()
            header[key] = member(key, memoryview(window)[lo:hi], gathering.problems)
        elif result == native.PAUSED:
            tell()
        else:
            return result


def salvage(scanner: native.Scanner, ended: int, window: Bytes, header: Header, gathering: Gathering) -> int:
    """Go on behind an event that has no end, as long as others begin after it."""
    for _ in range(SALVAGES):
        if ended != native.MORE or not scanner.is_inside_events() or not scanner.give_up():
            break
        ended = run(scanner, window, header, gathering)
    return ended
