"""Where in the program."""

from __future__ import annotations

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A function, with its file and line."""

    file: str
    line: int
    function: str
