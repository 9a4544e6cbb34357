"""Programs of XLA that a profile carries: their names and ids; the HLO itself is kept as it is."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from stepscope.formats.protobuf import fields, text
from stepscope.trace.problems import Problems
from stepscope.trace.schema import empty

_NUMBERED = re.compile(r"^(.*)\((-?\d{1,20})\)$", re.DOTALL)
_HLO_STATS = ("hlo_proto", "hlo proto")


def modules(names: list[tuple[str, int]], stats: dict[int, dict[str, Any]]) -> pl.DataFrame:
    """The `modules` table, from event names with their ids, and the stats of those that have any by row."""
    rows = []
    for row, found in sorted(stats.items()):
        hlo = next((value for name, value in found.items() if name.lower() in _HLO_STATS), None)
        if isinstance(hlo, bytes):
            name, number = program(names[row][0], names[row][1])
            given = found.get("program_id")
            rows.append(
                {
                    "name": name or module_name(hlo),
                    "program_id": as_signed(given) if isinstance(given, int) else number,
                    "hlo": hlo,
                }
            )
    return pl.DataFrame(rows, schema=empty("modules").schema)


def program(label: str, ident: int) -> tuple[str, int]:
    """Name and id of a program that is listed as `jit_step(12)`; without a number there, it is known by `ident`."""
    found = _NUMBERED.match(label)
    return (found[1], as_signed(int(found[2]))) if found else (label, ident)


def as_signed(number: int) -> int:
    """TPUs write ids as unsigned numbers of 64 bits, the table has signed ones."""
    wrapped = number & 0xFFFFFFFFFFFFFFFF
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped


def module_name(hlo: bytes) -> str:
    """The name that an HloProto gives its module."""
    for number, module in fields(memoryview(hlo), Problems()):
        if number == 1 and not isinstance(module, int):
            return next((text(value) for field, value in fields(module, Problems()) if field == 1), "")
    return ""
