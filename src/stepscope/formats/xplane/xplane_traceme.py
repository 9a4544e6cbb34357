"""Names of events that still carry their arguments, as TraceMe writes them: `name#key=value,key=value#`."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

_PACKED = re.compile(r"^(.*?)#([^#=,]+=[^#]*)#$", re.DOTALL)
_WHOLE = re.compile(r"^-?\d{1,18}$")


def unpack_names(event_names: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[int, str, Any]]]:
    """The names without arguments, and the arguments as (row of the name, key, value)."""
    packed = event_names["name"].str.contains(r"#.*=.*#$")
    if not packed.any():
        return event_names, []
    names = event_names["name"].to_list()
    found: list[tuple[int, str, Any]] = []
    for row in packed.arg_true():
        match = _PACKED.match(names[row])
        if match:
            names[row] = match[1]
            found += [(row, key, value) for key, value in _arguments(match[2])]
    return event_names.with_columns(name=pl.Series(names, dtype=pl.String)), found


def _arguments(text: str) -> list[tuple[str, Any]]:
    found = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            found.append((key.strip(), int(value) if _WHOLE.match(value) else value))
    return found
